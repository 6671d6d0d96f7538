package scenario

// AnswerKind is one of the checker's three answers: it is Bad, Good or Undecided.
type AnswerKind struct {
	Name      string // in prose
	Key       string // in result.json and in suites
	Bad, Good string
	Of        func(Safety) string
	Expected  func(*Expect) *string // where an expectation has it
}

// Answers are the three: verdict, guarantee and liveness.
func Answers() [3]AnswerKind {
	return [...]AnswerKind{
		{"verdict", "verdict", Unsafe, Safe, func(s Safety) string { return s.Verdict }, func(e *Expect) *string { return &e.Verdict }},
		{"guarantee", "promise", Broken, Kept, func(s Safety) string { return s.Promise }, func(e *Expect) *string { return &e.Promise }},
		{"liveness", "liveness", Stuck, Live, func(s Safety) string { return s.Liveness }, func(e *Expect) *string { return &e.Liveness }},
	}
}

// Unjudged has no answer, for a reason.
func Unjudged(why string) Safety {
	s := Safety{Verdict: Undecided, Promise: Undecided, Liveness: Undecided, Causes: []Cause{}, Why: map[string]string{}}
	for _, a := range Answers() {
		s.Why[a.Key] = why
	}
	return s
}

// AllGood reports whether every answer is the good one.
func (s Safety) AllGood() bool {
	for _, a := range Answers() {
		if a.Of(s) != a.Good {
			return false
		}
	}
	return true
}
