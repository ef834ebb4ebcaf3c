package conformance

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/skein-threads/skein/api/rest"
)

// The document is valid OpenAPI 3.1, with schemas of JSON Schema 2020-12.
func TestOpenAPI_IsValid(t *testing.T) {
	t.Parallel()
	raw, err := rest.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err != nil {
		t.Errorf("not OpenAPI 3.1: %v", err)
	}
}
