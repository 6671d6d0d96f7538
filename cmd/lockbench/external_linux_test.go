package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/testenv"
)

// secret is the password of every server here: it must be found nowhere.
const secret = "s3cr3t-of-the-test-7f1c"

// owned are servers that a test starts as a user of lockbench would: with TLS and
// passwords, and unknown to lockbench.
type owned struct {
	t    *testing.T
	dir  string // certificates, passwords, configurations
	run  *supervise.Run
	tls  *tls.Config // of a client
	env  []string    // of lockbench, besides the test's own
	out  string      // of the last run that passed
	temp string      // the folder for temporary files of the runs; "": each has its own
}

func newOwned(t *testing.T) *owned {
	t.Helper()
	t.Parallel() // they wait more than they compute
	run, err := supervise.Begin("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	// Servers that run as another user must be able to enter it.
	dir, err := os.MkdirTemp("", "lockbench-external-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o := &owned{t: t, dir: dir, run: run}
	o.certificates()
	o.write("password", secret+"\n")
	o.write("wrong", "not-the-password\n")
	return o
}

func (o *owned) write(name, text string) string {
	o.t.Helper()
	path := filepath.Join(o.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		o.t.Fatal(err)
	}
	return path
}

func (o *owned) path(name string) string { return filepath.Join(o.dir, name) }

// certificates makes a CA, and certificates of a server, of a server of last
// year, and of a client.
func (o *owned) certificates() {
	o.t.Helper()
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			o.t.Fatal(err)
		}
		return key
	}
	now, caKey := time.Now(), newKey()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	issue := func(name string, template, parent *x509.Certificate, key *ecdsa.PrivateKey) {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, caKey)
		if err != nil {
			o.t.Fatal(err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			o.t.Fatal(err)
		}
		o.write(name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		o.write(name+"-key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	}
	issue("ca", ca, ca, caKey)
	for i, name := range []string{"server", "client", "expired"} {
		end := now.Add(time.Hour)
		if name == "expired" {
			end = now.Add(-time.Minute)
		}
		issue(name, &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 2)), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: end,
			DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}, ca, newKey())
	}
	own, err := tls.LoadX509KeyPair(o.path("client.pem"), o.path("client-key.pem"))
	if err != nil {
		o.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	caPEM, err := os.ReadFile(o.path("ca.pem"))
	if err != nil || !pool.AppendCertsFromPEM(caPEM) {
		o.t.Fatal(err)
	}
	o.tls = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, ServerName: "localhost"}
}

// clientTLS is the part of a configuration that names the certificates.
const clientTLS = "tls: {ca: ca.pem, certificate: client.pem, key: client-key.pem, server_name: localhost}"

// start starts a server, which ends with the test.
func (o *owned) start(command supervise.Command) {
	o.t.Helper()
	log, err := os.Create(o.path(command.Name + ".log"))
	if err != nil {
		o.t.Fatal(err)
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if _, err := o.run.Start(command); err != nil {
		o.t.Fatal(err)
	}
}

// await repeats a request until the server answers.
func (o *owned) await(what string, ask func(context.Context) error) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			log, _ := os.ReadFile(o.path(what + ".log"))
			o.t.Fatalf("%s does not serve: %v\n%s", what, err, log)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// ended is what a run of the command left.
type ended struct {
	code           int
	stdout, stderr string
	out            string // the folder of results
}

// lockbench runs the command in a temporary folder of its own, and searches all
// that it writes, prints, and passes to its processes for the secret.
func (o *owned) lockbench(args ...string) ended {
	o.t.Helper()
	out, temp := o.t.TempDir(), cmp.Or(o.temp, o.t.TempDir())
	cmd := exec.Command("lockbench", append(args, "--out", out)...)
	cmd.Env = slices.Concat(os.Environ(), o.env, []string{"TMPDIR=" + temp})
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	over := make(chan struct{})
	searched := make(chan struct{})
	go func() {
		defer close(searched)
		// A process has no environment yet for a moment after its start.
		for seen, again := 0, time.Millisecond; ; {
			seen += o.searchProcesses(cmd.Process.Pid, temp)
			if seen > 0 {
				again = 300 * time.Millisecond
			}
			o.searchFiles(temp) // which the end of the run removes
			select {
			case <-over:
				if seen == 0 {
					o.t.Error("no process of the run was searched")
				}
				return
			case <-time.After(again):
			}
		}
	}()
	err := cmd.Wait()
	close(over)
	<-searched
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		o.t.Fatal(err)
	}
	o.searchFiles(out)
	for name, text := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String()} {
		if strings.Contains(text, secret) {
			o.t.Errorf("the password is in %s:\n%s", name, text)
		}
	}
	return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), out}
}

// searchProcesses looks at the arguments and the environments of the processes of
// a run, which ps shows, and returns how many there are.
func (o *owned) searchProcesses(pid int, temp string) (seen int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte(temp)) {
			continue // of another, or gone
		}
		seen++
		arguments, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		// The process that the user starts has the user's own environment.
		own := path == fmt.Sprintf("/proc/%d/environ", pid)
		if bytes.Contains(arguments, []byte(secret)) || !own && bytes.Contains(env, []byte(secret)) {
			o.t.Errorf("ps shows the password in %s, of %q", filepath.Dir(path), arguments)
		}
	}
	return seen
}

func (o *owned) searchFiles(dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // gone meanwhile
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(secret)) {
			o.t.Errorf("the password is in %s", path)
		}
		return nil
	})
	if err != nil {
		o.t.Error(err)
	}
}

// refused runs the command, which must end with exit code 1 and one line that
// contains words.
func (o *owned) refused(words string, args ...string) {
	o.t.Helper()
	got := o.lockbench(append([]string{"run", "--quiet"}, args...)...)
	if got.code != int(exitInternal) || !strings.Contains(got.stderr, words) || strings.Count(got.stderr, "\n") != 1 {
		o.t.Errorf("lockbench run %v: exit %d, %q; want exit 1 and one line with %q", args, got.code, got.stderr, words)
	}
}

// misused calls the command in this process: it must end with exit code 2 before it
// starts any other, and with one line that contains words and no secret.
func misused(t *testing.T, words string, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	if text := stderr.String(); code != exitUsage || !strings.Contains(text, words) || strings.Count(text, "\n") != 1 || strings.Contains(text, secret) {
		t.Errorf("lockbench %v: exit %d, %q; want exit 2 and one line with %q", args, code, text, words)
	}
}

// experiment are the flags of a short run.
func experiment(config, recipes string, more ...string) []string {
	return append([]string{"--env", "external", "--config", config, "--recipe", recipes,
		"--workload", "guarded-counter", "--clients", "2", "--duration", "500ms", "--warmup", "100ms", "--ttl", "4s"}, more...)
}

// ran runs an experiment, which must pass, and returns its environment.json.
func (o *owned) ran(args ...string) string {
	o.t.Helper()
	got := o.lockbench(append([]string{"run", "--quiet", "--format", "json"}, args...)...)
	if got.code != 0 {
		o.t.Fatalf("lockbench run %v: exit %d\n%s\n%s", args, got.code, got.stdout, got.stderr)
	}
	o.out = filepath.Join(got.out, "latest")
	data, err := os.ReadFile(filepath.Join(o.out, scenario.FileEnvironment))
	if err != nil {
		o.t.Fatal(err)
	}
	return string(data)
}

// killed starts a run that lasts, and kills it when begun says that it has created
// something. The runs after it share its folder for temporary files.
func (o *owned) killed(begun func(context.Context) error, args ...string) {
	o.t.Helper()
	o.temp = o.t.TempDir()
	cmd := exec.Command("lockbench", append(append([]string{"run", "--quiet"}, args...), "--duration", "10m", "--out", o.t.TempDir())...)
	cmd.Env = append(os.Environ(), "TMPDIR="+o.temp)
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.await("load", begun)
	if err := cmd.Process.Kill(); err != nil {
		o.t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

func (o *owned) redis(name, certificate string, more ...string) (address string) {
	o.t.Helper()
	binary, err := cluster.Find("redis", "")
	if err != nil {
		o.t.Fatal(err)
	}
	address = freeAddress(o.t)
	o.start(supervise.Command{Name: name, Path: binary.Path, Dir: o.dir, Args: append([]string{
		"--port", "0", "--tls-port", portOf(address), "--bind", "127.0.0.1", "--save", "",
		"--tls-cert-file", o.path(certificate + ".pem"), "--tls-key-file", o.path(certificate + "-key.pem"), "--tls-ca-cert-file", o.path("ca.pem"),
	}, more...)})
	return address
}

func TestExternalRedisWithTLSAndPassword(t *testing.T) {
	testenv.NeedsServers(t, "redis")
	o := newOwned(t)
	acl := o.write("users.acl", "user default off\nuser bench on >"+secret+" ~* &* +@all\nuser plain on >"+secret+" ~*lb.* &*lb.* +@all -config -info\nuser weak on >"+secret+" ~* +@connection +exists +client +script\n")
	address := o.redis("redis", "server", "--aclfile", acl)
	replica := o.redis("replica", "server", "--requirepass", secret, "--replicaof", "127.0.0.1 1")
	expired := o.redis("expired", "expired", "--requirepass", secret)
	admin := redis.NewClient(&redis.Options{Addr: address, Username: "bench", Password: secret, TLSConfig: o.tls})
	defer admin.Close()
	o.await("redis", func(ctx context.Context) error { return admin.Set(ctx, "theirs", "kept", 0).Err() })
	for _, a := range []string{replica, expired} {
		o.await(a, func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", a)
			if err == nil {
				conn.Close()
			}
			return err
		})
	}
	configure := func(name, address, login string) string {
		return o.write(name+".yaml", fmt.Sprintf("backends:\n  redis:\n    addresses: [%q]\n    %s\n    %s\n", address, login, clientTLS))
	}
	good := configure("good", address, "user: bench\n    password_file: password")

	env := o.ran(experiment(good, "redis/token,redis/fenced")...)
	contains(t, env, `"environment": "external"`, `"identity": "run id `, `"appendonly": "no"`, address)
	// A fault on the client's side, by a proxy through which TLS passes.
	o.ran("--env", "external", "--config", good, "--recipe", "redis/token", "--fault", "holder-reset", "--fault-at", "200ms", "--ttl", "500ms", "--clients", "2")
	keys := func(when string) {
		t.Helper()
		keys, err := admin.Keys(t.Context(), "*").Result()
		if err != nil || len(keys) != 1 || keys[0] != "theirs" {
			t.Errorf("the server's keys after %s: %v (%v), want the user's own alone", when, keys, err)
		}
	}
	keys("the runs")

	// Also a run that is interrupted removes what it created.
	long := exec.Command("lockbench", "run", "--quiet", "--env", "external", "--config", good, "--recipe", "redis/fenced", "--workload", "hot-key",
		"--clients", "2", "--duration", "10m", "--out", t.TempDir())
	if err := long.Start(); err != nil {
		t.Fatal(err)
	}
	begun := func(ctx context.Context) error {
		if size, err := admin.DBSize(ctx).Result(); err != nil || size < 2 {
			return fmt.Errorf("%d keys, %v", size, err)
		}
		return nil
	}
	o.await("load", begun)
	if err := long.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := long.Wait(); long.ProcessState.ExitCode() != int(exitInterrupted) {
		t.Errorf("an interrupted run: %v", err)
	}
	keys("the interrupted run")

	// What a killed run left is removed by the next one.
	o.killed(begun, experiment(good, "redis/fenced")...)
	o.ran(experiment(good, "redis/token")...)
	keys("the run after a killed one")

	// A user with the rights that the documents name, and a password from a variable.
	o.env = []string{"LOCKBENCH_REDIS_PASSWORD=" + secret}
	env = o.ran(experiment(configure("env", address, "user: plain"), "redis/fenced", "--max-rate", "50")...)
	contains(t, env, `"settings": "not permitted: `)
	doc, err := scenario.ReadDocument(o.out)
	if err != nil {
		t.Fatal(err)
	}
	// 50 a second for 500 ms, and each client's first.
	if n := doc.Scenarios[0].Acquired; n == 0 || n > 27 {
		t.Errorf("%d acquires in 500ms, with at most 50 a second", n)
	}
	o.env = nil

	try := func(name, address, login string) []string {
		return experiment(configure(name, address, login), "redis/token")
	}
	o.refused("wrong user or password", try("wrong", address, "user: bench\n    password_file: wrong")...)
	o.refused("missing privilege", try("weak", address, "user: weak\n    password_file: password")...)
	o.refused("it is read-only", try("replica", replica, "password_file: password")...)
	o.refused("its certificate has expired", try("expired", expired, "password_file: password")...)
	o.refused("it cannot be reached", try("gone", freeAddress(t), "password_file: password")...)

	misused(t, "hits servers", "run", "--env", "external", "--config", good, "--recipe", "redis/token", "--fault", "node:1-kill")
	misused(t, "external servers get 64 at most", append([]string{"run"}, experiment(good, "redis/token", "--clients", "65")...)...)
	misused(t, "write BACKEND=env:NAME", append([]string{"run"}, experiment(good, "redis/token", "--password", "redis=some-password")...)...)
	misused(t, "needs --config", "run", "--env", "external", "--recipe", "redis/token", "--workload", "hot-key")
	// The message about a wrong file does not show what is in it.
	misused(t, "unknown field", append([]string{"run"}, experiment(configure("literal", address, "password: "+secret), "redis/token")...)...)
}

func TestExternalEtcdWithClientCertificates(t *testing.T) {
	testenv.NeedsServers(t, "etcd")
	o := newOwned(t)
	binary, err := cluster.Find("etcd", clustertest.Binary(t, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	// The server advertises an address that the configuration does not name.
	decoy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer decoy.Close()
	go func() {
		if conn, err := decoy.Accept(); err == nil {
			conn.Close()
			t.Error("a connection to an address that the configuration does not name")
		}
	}()
	address, peer := freeAddress(t), "http://"+freeAddress(t)
	o.start(supervise.Command{Name: "etcd", Path: binary.Path, Dir: o.dir, Args: []string{
		"--data-dir=" + o.path("etcd"), "--listen-client-urls=https://" + address, "--advertise-client-urls=https://" + decoy.Addr().String(),
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		"--cert-file=" + o.path("server.pem"), "--key-file=" + o.path("server-key.pem"), "--trusted-ca-file=" + o.path("ca.pem"), "--client-cert-auth",
	}})
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, TLS: o.tls})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	o.await("etcd", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := admin.Put(ctx, "theirs", "kept")
		return err
	})
	configure := func(name, login string) string {
		return o.write(name+".yaml", fmt.Sprintf("prefix: bench\nbackends:\n  etcd:\n    addresses: [%q]\n    %s\n    %s\n", address, clientTLS, login))
	}
	keys := func(client *clientv3.Client) {
		t.Helper()
		all, err := client.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil || len(all.Kvs) != 1 || string(all.Kvs[0].Key) != "theirs" {
			t.Errorf("the server's keys after the run: %v (%v), want the user's own alone", all, err)
		}
	}
	env := o.ran(experiment(configure("good", ""), "etcd/mutex,etcd/client-mutex")...)
	contains(t, env, `"identity": "cluster id `, `"settings": "not read: etcd has no request`, address)
	keys(admin)
	o.refused("client's certificate", experiment(o.write("bare.yaml",
		fmt.Sprintf("backends: {etcd: {addresses: [%q], tls: {ca: ca.pem, server_name: localhost}}}", address)), "etcd/mutex")...)

	// With users, whose names and passwords come before the certificate's.
	ctx := t.Context()
	steps := []func() error{
		func() error { _, err := admin.RoleAdd(ctx, "root"); return err },
		func() error { _, err := admin.UserAdd(ctx, "root", secret); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := admin.RoleAdd(ctx, "bench"); return err },
		func() error {
			_, err := admin.RoleGrantPermission(ctx, "bench", "bench.", clientv3.GetPrefixRangeEnd("bench."), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := admin.UserAdd(ctx, "bench", secret); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "bench", "bench"); return err },
		func() error { _, err := admin.UserAdd(ctx, "weak", secret); return err },
		func() error { _, err := admin.AuthEnable(ctx); return err },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d of the users: %v", i, err)
		}
	}
	o.ran(experiment(configure("user", "user: bench\n    password_file: password"), "etcd/mutex")...)
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, TLS: o.tls, Username: "root", Password: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	keys(root)
	o.refused("wrong user or password", experiment(configure("wrong", "user: bench\n    password_file: wrong"), "etcd/mutex")...)
	o.refused("missing privilege", experiment(configure("weak", "user: weak\n    password_file: password"), "etcd/mutex")...)
}

// The topology is that of the servers, unless the user gives one.
func TestExternalTopologyComesFromTheConfiguration(t *testing.T) {
	config := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(config, []byte(`backends: {etcd: {topology: quorum, addresses: ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, more := range map[string][]string{"quorum": nil, "single": {"--topology", "single"}} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"run", "--dry-run", "--format", "json"}, experiment(config, "etcd/mutex", more...)...)
		if code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != exitOK {
			t.Fatalf("exit %d: %s", code, &stderr)
		}
		contains(t, stdout.String(), `"topology": "`+want+`"`, `"max_rate": 1000`)
		contains(t, stderr.String(), "up to 2 clients (at most 64), 1000 acquires/s")
	}
}
