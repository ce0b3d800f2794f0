package telemetry

import "github.com/prometheus/client_golang/prometheus"

// abuseMetrics are the instruments of the guard against fake likes.
type abuseMetrics struct {
	refused, scored, reads *prometheus.CounterVec
}

// Abuse shows the instruments of the guard against fake likes, with every reason
// of a refusal and every result of a question to the scorer from the first moment
// on, so that the first one is an increase. It is called once, before the others.
func (m *Metrics) Abuse(reasons, results []string) {
	m.abuse = abuseMetrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "likectl_abuse_refused_total", Help: "Likes and saves refused as fake, by the reason: a list, a velocity limit, the scorer.",
		}, []string{"reason"}),
		scored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "likectl_abuse_scorer_requests_total", Help: "Questions to the scorer, by how they ended.",
		}, []string{"result"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "likectl_abuse_file_reads_total", Help: "Readings of the files against abuse.",
		}, []string{"file", "result"}),
	}
	m.registry.MustRegister(m.abuse.refused, m.abuse.scored, m.abuse.reads)
	for _, reason := range reasons {
		m.abuse.refused.WithLabelValues(reason)
	}
	for _, result := range results {
		m.abuse.scored.WithLabelValues(result)
	}
}

// AbuseRefused records a like or save that is refused as fake.
func (m *Metrics) AbuseRefused(reason string) { m.abuse.refused.WithLabelValues(reason).Inc() }

// Scored records how a question to the scorer ended.
func (m *Metrics) Scored(result string) { m.abuse.scored.WithLabelValues(result).Inc() }

// AbuseRead records a reading of a file against abuse, "list" or "token".
func (m *Metrics) AbuseRead(file string, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.abuse.reads.WithLabelValues(file, result).Inc()
}
