package page

// Step is what a thread that is played shows next.
type Step struct {
	Version int64 // the next version, all of whose events were recorded together
	Wait    int64 // how long after the one before, in milliseconds
}

// Next returns what comes after the version that is shown, nil if nothing does or the page shows
// the present.
func (v *View) Next() *Step {
	if v.Live() || v.site.Next == nil {
		return nil
	}
	step, err := v.site.Next(v.Ask)
	if err != nil { // the page is whole without it, and is not played
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
