package zookeeper

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
)

// Find searches the jars (a folder that Apache's archive was unpacked to, or
// Debian's) and a Java runtime.
func (Backend) Find(s backend.Search) (backend.Binary, error) {
	jars, err := findJars(s)
	if err != nil {
		return backend.Binary{}, err
	}
	b := backend.Binary{
		Product: "Apache ZooKeeper", Version: jarVersion(jars[0]),
		Extra: map[string]string{"classpath": strings.Join(jars, string(filepath.ListSeparator))},
	}
	if home := os.Getenv("JAVA_HOME"); home != "" && backend.Executable(filepath.Join(home, "bin", "java")) == nil {
		b.Path = filepath.Join(home, "bin", "java")
	} else {
		b.Path = backend.Lookup("java")
	}
	if b.Path == "" {
		return backend.Binary{}, s.MissingPart("its jars are here, but java was not found (PATH, JAVA_HOME)", javaPackages.Command())
	}
	// On macOS /usr/bin/java is there without a Java behind it, so ask.
	text, err := backend.VersionOf(b.Path, "-version")
	if err != nil {
		return backend.Binary{}, s.MissingPart(fmt.Sprintf("its jars are here, but java does not run (%v)", err), javaPackages.Command())
	}
	b.At = jars[0] + ", java " + backend.Between(text, `version "`, `"`) + " at " + b.Path
	return b, nil
}

// javaPackages are the part of the backend's packages that brings Java.
var javaPackages = backend.Packages{Debian: "default-jre-headless", Brew: "openjdk"}

// findJars lists the class path, ZooKeeper's own jar first.
func findJars(s backend.Search) ([]string, error) {
	if s.Named != "" {
		dir, err := filepath.Abs(s.Named)
		if err != nil {
			return nil, s.Unusable(err)
		}
		if strings.HasSuffix(dir, ".jar") {
			dir = filepath.Dir(dir)
		}
		if _, err := os.Stat(dir); err != nil {
			return nil, s.Unusable(err)
		}
		jars := jarsIn(dir)
		if jars == nil {
			return nil, s.Unusable(fmt.Errorf("neither %s nor lib/ in it holds zookeeper-VERSION.jar; name the folder that Apache's archive was unpacked to", dir))
		}
		return jars, nil
	}
	for _, pattern := range []string{"/opt/zookeeper", "/opt/apache-zookeeper-*", "/usr/local/zookeeper", "/usr/local/opt/zookeeper/libexec", "/opt/homebrew/opt/zookeeper/libexec", "/usr/share/java"} {
		dirs, _ := filepath.Glob(pattern)
		slices.Sort(dirs)
		slices.Reverse(dirs) // the newest first
		for _, dir := range dirs {
			if jars := jarsIn(dir); jars != nil {
				return jars, nil
			}
		}
	}
	return nil, s.Missing("zookeeper.jar was not found")
}

// jarsIn is the class path of a ZooKeeper in dir; nil if there is none.
func jarsIn(dir string) []string {
	for _, d := range []string{filepath.Join(dir, "lib"), dir} {
		// Debian puts all of the machine's jars into one folder: take those
		// that the server needs.
		if own := filepath.Join(d, "zookeeper.jar"); readable(own) {
			jars := []string{own}
			for _, name := range []string{
				"zookeeper-jute", "slf4j-api", "slf4j-simple", "metrics-core", "snappy-java", "commons-cli", "commons-io",
				"audience-annotations", "netty-handler", "netty-transport", "netty-transport-native-epoll",
				"netty-transport-native-unix-common", "netty-buffer", "netty-common", "netty-codec", "netty-resolver",
			} {
				if jar := filepath.Join(d, name+".jar"); readable(jar) {
					jars = append(jars, jar)
				}
			}
			return jars
		}
		own, _ := filepath.Glob(filepath.Join(d, "zookeeper-[0-9]*.jar"))
		if len(own) == 0 {
			continue
		}
		jars := own[:1]
		all, _ := filepath.Glob(filepath.Join(d, "*.jar"))
		for _, jar := range all {
			if jar != own[0] {
				jars = append(jars, jar)
			}
		}
		return jars
	}
	return nil
}

func readable(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// jarVersion is the version in a jar's manifest or name, or another name for it
// in its folder (Debian's zookeeper.jar has one); "" if none does.
func jarVersion(path string) string {
	if v := manifestVersion(path); v != "" {
		return v
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "zookeeper-[0-9]*.jar"))
	for _, name := range names {
		if same, err := filepath.EvalSymlinks(name); err == nil && same == target {
			return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "zookeeper-"), ".jar")
		}
	}
	return ""
}

func manifestVersion(path string) string {
	jar, err := zip.OpenReader(path)
	if err != nil {
		return ""
	}
	defer jar.Close()
	f, err := jar.Open("META-INF/MANIFEST.MF")
	if err != nil {
		return ""
	}
	defer f.Close()
	found := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok {
			found[k] = strings.TrimSpace(v)
		}
	}
	for _, k := range []string{"Implementation-Version", "Bundle-Version"} {
		if v, _, _ := strings.Cut(found[k], "-"); v != "" {
			return v
		}
	}
	return ""
}

// writeLogging makes the loggers that Apache's archives use (logback; log4j in
// old ones) write to standard error what is worth a line. Without it logback
// logs every packet. Debian's logger takes no notice.
func writeLogging(dir string) error {
	const logback = `<configuration>
  <appender name="E" class="ch.qos.logback.core.ConsoleAppender"><target>System.err</target>
    <encoder><pattern>%d{ISO8601} %-5p [%t] %c{1}: %m%n</pattern></encoder></appender>
  <root level="INFO"><appender-ref ref="E"/></root>
</configuration>
`
	const log4j = `log4j.rootLogger=INFO, E
log4j.appender.E=org.apache.log4j.ConsoleAppender
log4j.appender.E.target=System.err
log4j.appender.E.layout=org.apache.log4j.PatternLayout
log4j.appender.E.layout.ConversionPattern=%d{ISO8601} %-5p [%t] %c{1}: %m%n
`
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "logback.xml"), []byte(logback), 0o600),
		os.WriteFile(filepath.Join(dir, "log4j.properties"), []byte(log4j), 0o600),
	)
}
