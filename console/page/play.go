package page

// Step is the next step of a thread that is played.
type Step struct {
	Version int64 // the next version, all of whose events were recorded together
	Wait    int64 // how long after the one before, in milliseconds
}

// Next returns the step after the shown version, nil if there is none or the page shows the
// present.
func (v *View) Next() *Step {
	if v.Live() || v.site.Next == nil {
		return nil
	}
	step, err := v.site.Next(v.Ask)
	if err != nil { // the page is shown without it, and cannot be played
		return nil
	}
	return step
}

// PlayAddress returns the address at which the page is played, from the beginning or from the
// version that is shown.
func (v *View) PlayAddress() string {
	if !v.Live() {
		return v.With("play", "1")
	}
	return v.Request.URL.EscapedPath() + "?at=1&play=1"
}
