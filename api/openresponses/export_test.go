package openresponses

import transform "github.com/skein-threads/skein/events/openresponses"

// Check decodes a request for a response as far as that needs no server.
func Check(body []byte) error {
	d, err := decodeCreate(body)
	if err != nil {
		return err
	}
	input, err := inputOf(d.Input)
	if err != nil {
		return err
	}
	if _, err := transform.Read(input); err != nil {
		return err
	}
	_, err = d.settings(&echo{})
	return err
}
