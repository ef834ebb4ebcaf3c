package metrics

// ReadModels is the same metrics as the read side knows them: it names what it
// tells in its own way.
type ReadModels struct{ m *Metrics }

// ReadModels returns the metrics for the read side.
func (m *Metrics) ReadModels() ReadModels { return ReadModels{m} }

// Broken implements projections.Metrics.
func (r ReadModels) Broken(uint64) { r.m.broken.WithLabelValues("projections").Inc() }

// Batch implements projections.Metrics.
func (r ReadModels) Batch(_, documents int, seconds float64) {
	r.m.projectionRun.WithLabelValues().Observe(seconds)
	r.m.projectionDoc.Add(float64(documents))
}

// Ends implements cleanup.Metrics.
func (r ReadModels) Ends(open int) { r.m.endsOpen.Set(float64(open)) }

// Query implements query.Metrics.
func (r ReadModels) Query(name, result string, seconds float64) {
	r.m.queries.WithLabelValues(name, result).Inc()
	r.m.queryTime.WithLabelValues(name).Observe(seconds)
}
