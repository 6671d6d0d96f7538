package scenario

// Threshold is a parsed expectation of performance: "acquire.p99 < 20ms".
type Threshold struct {
	Text   string
	Metric string
	Op     string  // <, <=, >, >=
	Value  float64 // in the metric's own unit: ns, or 1/s
}

// ParseThreshold reads "acquire.p99 < 20ms" or "throughput > 1000/s".
func ParseThreshold(s string) (Threshold, error) { panic("stub") }

// Check compares a result with the threshold. known is false if the metric
// was not measured.
func (t Threshold) Check(r Result) (met, known bool) { panic("stub") }
