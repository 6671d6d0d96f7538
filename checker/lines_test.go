package checker

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/history"
)

// Logs as teams have them: JSON lines of a simulated lock, with and without numbers
// and attempts, and damaged. Damage never creates an accusation, and never a safe.

// lineForm is what a log leaves out.
type lineForm struct{ numbers, attempts bool }

// lines writes h as another program would, in the order of the returns.
func (f lineForm) lines(h *history.History) []string {
	calls := slices.Clone(h.Calls)
	slices.SortFunc(calls, func(a, b history.Call) int { return inTime(&a, &b) })
	var out []string
	for _, c := range calls {
		line := map[string]any{"client": fmt.Sprint("web-", c.Client), "kind": c.Kind.String(), "key": "orders", "invoke": 1000 * (c.Invoke + 1)}
		if f.numbers {
			line["seq"] = c.Seq
		}
		if f.attempts {
			line["attempt"] = c.Attempt.String()
		}
		if c.Flags&history.FlagShared != 0 {
			line["flags"] = []string{"shared"}
		}
		if c.Fence > 0 {
			line["fence"] = c.Fence
		}
		if c.Outcome != history.Open {
			// The next call of the client begins later.
			line["outcome"], line["return"] = c.Outcome.String(), 1000*(c.Return+1)+500
		}
		text, _ := json.Marshal(line) // of plain values
		out = append(out, string(text))
	}
	return out
}

// damage hurts one line, so that a reader can know of it.
func (f lineForm) damage(rng *rand.Rand, lines []string) []string {
	i := rng.IntN(len(lines))
	lines = slices.Clone(lines)
	switch line := lines[i]; rng.IntN(5) {
	case 0: // cut
		lines[i] = line[:1+rng.IntN(len(line)-2)]
	case 1: // garbled
		at := rng.IntN(len(line) - 2)
		lines[i] = line[:at] + "\x00\xff" + line[at+2:]
	case 2: // twice in a row
		lines = slices.Insert(lines, i, line)
	case 3: // again, later
		lines = slices.Insert(lines, i+1+rng.IntN(len(lines)-i), line)
	case 4: // gone
		client, _, _ := strings.Cut(line[strings.Index(line, "web-"):], `"`)
		if !f.numbers || !slices.ContainsFunc(lines[i+1:], func(x string) bool { return strings.Contains(x, `"`+client+`"`) }) {
			return f.damage(rng, lines) // nothing shows it
		}
		lines = slices.Delete(lines, i, i+1)
	}
	return lines
}

func readLines(t *testing.T, lines []string) *history.History {
	t.Helper()
	h, err := history.ReadJSONL(strings.NewReader(strings.Join(lines, "\n")), "log")
	if err != nil && !errors.Is(err, history.ErrNoRecords) {
		t.Fatal(err)
	}
	return h
}

// accusations has a bit for each answer that accuses the lock.
func accusations(r Report) (bits int) {
	for i, accused := range []bool{r.Verdict.Value == Unsafe, r.Promise.Value == Broken, r.Liveness.Value == Stuck} {
		if accused {
			bits |= 1 << i
		}
	}
	return bits
}

func TestDamagedLines(t *testing.T) {
	const ttl = 12_000
	for k, d := range []struct {
		name  string
		world world
		opt   Options
	}{
		{"mutex", world{tries: 2, lossy: 8}, Options{}},
		{"mutex with tokens", world{tries: 1, lossy: 8, tokens: true}, Options{Fencing: true}},
		{"re-entrant", world{tries: 1, reentrant: true}, Options{Reentrant: true}},
		{"read-write", world{tries: 2, lossy: 8, reads: 2}, Options{}},
		{"lease", world{tries: 2, lossy: 8, ttl: ttl / 1000}, Options{Leased: true}},
		{"lease, timed", world{tries: 2, lossy: 8, ttl: ttl / 1000}, Options{Leased: true, TTL: ttl, Slack: 1000}},
	} {
		for _, form := range []lineForm{{true, true}, {true, false}, {false, true}, {false, false}} {
			t.Run(fmt.Sprintf("%s, %+v", d.name, form), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(41, uint64(k)))
				safe, caught, bad := 0, 0, 0
				n := rounds(100)
				for i := range n {
					w := d.world
					w.clients, w.ticks, w.eager, w.hold = 2+rng.IntN(4), 30+rng.IntN(40), rng.IntN(3), 1+rng.IntN(6)
					broken := i%2 == 0
					if broken {
						w.defect, w.odds = doubleGrant, 2
					}
					h := &w.run(rng).h
					if len(h.Calls) < 3 {
						continue
					}
					lines := form.lines(h)
					o := d.opt
					o.Takeover = 1
					hurt := form.damage(rng, lines)
					damaged := Check(readLines(t, hurt), o)
					if damaged.Verdict.Value == Safe || damaged.Promise.Value == Kept || damaged.Liveness.Value == Live {
						t.Fatalf("%v, %v\n%s", damaged.Verdict, damaged.Promise, strings.Join(hurt, "\n"))
					}
					o.Takeover = 0
					whole := Check(readLines(t, lines), o)
					if whole.Verdict.Value == Safe {
						safe++
					}
					damaged = Check(readLines(t, hurt), o)
					if !broken && (whole.Promise.Value == Broken || whole.Verdict.Value == Unsafe && !o.Leased) {
						t.Fatalf("a sound lock is accused: %v, %v\n%s", whole.Verdict, whole.Promise, strings.Join(lines, "\n"))
					}
					before, after := accusations(whole), accusations(damaged)
					if after&^before != 0 {
						t.Fatalf("damage accuses: %v, %v\n%s\n\nwhole:\n%s", damaged.Verdict, damaged.Promise, strings.Join(hurt, "\n"), strings.Join(lines, "\n"))
					}
					if before != 0 {
						bad++
					}
					if after != 0 {
						caught++
					}
				}
				t.Logf("%d whole logs are safe; of %d unsafe ones %d are still accused when damaged", safe, bad, caught)
				if n >= 100 && (safe == 0 || bad == 0 || caught*10 < bad*5) {
					t.Errorf("the mix proves little")
				}
			})
		}
	}
}

// Logs that were judged wrongly once, and beside each a lock with a real defect whose
// log looks alike.
func TestForeignLogs(t *testing.T) {
	hold := func(client string, acquire, held, release, released int) string {
		return fmt.Sprintf(`{"client":%q,"kind":"acquire","outcome":"held","invoke":%d,"return":%d}`+"\n"+`{"client":%[1]q,"kind":"release","outcome":"released","invoke":%[4]d,"return":%[5]d}`+"\n",
			client, acquire, held, release, released)
	}
	const (
		outer = `{"client":"a","kind":"acquire","outcome":"held","invoke":1000,"return":2000}` + "\n"
		inner = `{"client":"a","kind":"acquire","outcome":"held","invoke":3000,"return":4000}` + "\n"
		free1 = `{"client":"a","kind":"release","outcome":"released","invoke":5000,"return":6000}` + "\n"
		free2 = `{"client":"a","kind":"release","outcome":"released","invoke":7000,"return":8000}` + "\n"
		busy  = `{"client":"b","kind":"try","outcome":"busy","invoke":3000,"return":4000}` + "\n"
		waits = `{"client":"b","kind":"acquire","outcome":"held","invoke":1500,"return":9000}` + "\n"
	)
	cut := func(line string) string { return line[:len(line)/2] + "\n" }
	for _, tc := range []struct {
		name             string
		log              string
		opt              Options
		verdict, promise string
	}{
		{"nested acquires without attempts", outer + inner + hold("b", 4500, 9500, 9600, 9700) + free1 + free2, Options{Reentrant: true}, Safe, Kept},
		{"the inner release frees the lock", outer + inner + hold("b", 4500, 6500, 9600, 9700) + free1 + free2, Options{Reentrant: true}, Unsafe, Broken},
		{"the release before a grant is cut", outer + cut(free1) + hold("b", 6500, 7000, 9000, 9500) + `{"client":"a","kind":"try","outcome":"busy","invoke":7500,"return":8000}`, Options{}, Unknown, Unknown},
		{"an overlap far from the damage", outer + hold("b", 1500, 2500, 4000, 4500) + free1 + cut(busy), Options{}, Unsafe, Broken},
		{"the hold that explains a refusal is cut", cut(outer) + busy + free1, Options{}, Unknown, Unknown},
		{"no hold explains a refusal", hold("b", 3000, 4000, 5000, 6000) + `{"client":"a","kind":"try","outcome":"busy","invoke":1000,"return":2000}`, Options{}, Unknown, Broken},
		{"an acquire stands twice", outer + outer + free1 + hold("b", 5500, 6500, 8000, 8500), Options{Reentrant: true}, Unknown, Unknown},
		{"an attempt with two acquires explains a refusal", strings.ReplaceAll(outer+inner, `"client"`, `"attempt":"x","client"`) + strings.ReplaceAll(busy, "3000", "2500"), Options{}, Unknown, Unknown},
		{"never released, and granted to another", outer + waits, Options{}, Unknown, Unknown},
		{"released after another's grant", outer + waits + `{"client":"a","kind":"release","outcome":"released","invoke":9500,"return":9600}`, Options{}, Unsafe, Broken},
		{"the threads of a host", strings.ReplaceAll(hold("a", 1000, 2000, 5000, 6000)+hold("b", 1500, 5500, 8000, 9000), `"b"`, `"a"`) + hold("c", 7000, 10000, 11000, 12000), Options{}, Unknown, Unknown},
		{"a release without its acquire", hold("a", 1000, 2000, 3000, 4000) + hold("b", 4100, 4200, 5000, 5500) + free2, Options{}, Unknown, Unknown},
		{"an unknown acquire whose loss was signalled", `{"client":"a","kind":"acquire","outcome":"unknown","invoke":1000,"return":1500}` + "\n" + strings.ReplaceAll(busy, "000", "100") +
			`{"client":"a","kind":"lost","outcome":"lost","invoke":5000,"return":5000}` + "\n" + hold("c", 5500, 6000, 7000, 8000) + `{"client":"a","kind":"read","outcome":"accepted","invoke":9000,"return":9500}`, Options{}, Unknown, Kept},
		{"an unknown acquire that a renewal confirms", `{"client":"a","kind":"acquire","outcome":"unknown","invoke":1000,"return":1500}` + "\n" +
			`{"client":"a","kind":"extend","outcome":"extended","invoke":2000,"return":2500}` + "\n" + hold("b", 3000, 4000, 9000, 9500) + free2, Options{Leased: true}, Unsafe, Broken},
		{"tokens that fall, and one grant without", strings.ReplaceAll(hold("a", 1000, 2000, 3000, 4000), `"held",`, `"held","fence":5,`) + strings.ReplaceAll(hold("b", 5000, 6000, 7000, 8000), `"held",`, `"held","fence":4,`) +
			hold("a", 9000, 9100, 9200, 9300), Options{Fencing: true, TokensMissing: true}, Unknown, Broken},
		{"tokens that grow, and one grant without", strings.ReplaceAll(hold("a", 1000, 2000, 3000, 4000), `"held",`, `"held","fence":5,`) + hold("b", 1500, 6000, 7000, 8000), Options{Fencing: true, TokensMissing: true}, Safe, Unknown},
		{"a lease that its client trusts", strings.ReplaceAll(outer, `"held",`, `"held","lease_end":5000,`) + hold("b", 1500, 5500, 9000, 9500) + `{"client":"a","kind":"release","outcome":"lost","invoke":9000,"return":9500}`, Options{Leased: true, TrustLeaseEnd: true}, Safe, Kept},
		{"and another is granted it too soon", strings.ReplaceAll(outer, `"held",`, `"held","lease_end":5000,`) + hold("b", 1500, 4500, 9000, 9500) + `{"client":"a","kind":"release","outcome":"lost","invoke":9000,"return":9500}`, Options{Leased: true, TrustLeaseEnd: true}, Unsafe, Kept},
		{"a clock of no sense", `{"stream":{"client":0,"worker":1,"clock_uncertainty_ns":-1}}` + "\n" + outer + hold("b", 1500, 2500, 4000, 4500) + free1, Options{}, Unknown, Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := readLines(t, strings.Split(strings.TrimSpace(tc.log), "\n"))
			r := Check(h, tc.opt)
			if r.Verdict.Value != tc.verdict || r.Promise.Value != tc.promise {
				t.Errorf("%v, %v; want %s, %s; damage %v", r.Verdict, r.Promise, tc.verdict, tc.promise, h.Damage)
			}
		})
	}
}

// A log that ends while a client holds shows no stuck key; one whose holder released
// does.
func TestLogEndsInAHold(t *testing.T) {
	const begin = `{"client":"a","kind":"acquire","outcome":"held","invoke":1000,"return":2000}`
	const end = `{"client":"b","kind":"acquire","outcome":"failed","invoke":3000,"return":90000}`
	const release = `{"client":"a","kind":"release","outcome":"released","invoke":4000,"return":5000}`
	o := Options{Takeover: 10_000}
	if r := Check(readLines(t, []string{begin, end}), o); r.Liveness.Value != Unknown || !strings.Contains(r.Liveness.Why, "no end of a hold") {
		t.Errorf("cut: %v", r.Liveness)
	}
	if r := Check(readLines(t, []string{begin, end, release}), o); r.Liveness.Value != Stuck {
		t.Errorf("released: %v", r.Liveness)
	}
}
