package metrics

// Places implements quota.Metrics.
func (m *Metrics) Places(kind string, taken, waiting int) {
	m.placesTaken.WithLabelValues(kind).Set(float64(taken))
	m.placesWaiting.WithLabelValues(kind).Set(float64(waiting))
}

// PlaceRefused implements quota.Metrics.
func (m *Metrics) PlaceRefused(kind, why string) { m.placesRefused.WithLabelValues(kind, why).Inc() }

// Suspended counts a tenant that floods and was suspended.
func (m *Metrics) Suspended() { m.suspensions.Inc() }
