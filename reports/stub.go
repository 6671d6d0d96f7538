package reports
import ("github.com/lockbench/lockbench/scenario")
type plotFile struct{Title, Caption, SVG, PNG string; Inline string}
func drawPlots(r run) ([]plotFile, []string, error) { return nil,nil,nil }
func renderHTML(c *content, r run) ([]byte, error) {return nil,nil}
func renderMarkdown(c *content) string {return ""}
func junit(d scenario.Document) ([]byte, error) {return nil,nil}
func bench(d scenario.Document) []byte {return nil}
func Several(dirs []string, out string) error {return nil}
const tagAcquire = "acquire"
