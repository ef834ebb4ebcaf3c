// Command manifests reads what Helm renders. It refuses fields that Kubernetes' own types do not have,
// values of another type, and what refers to nothing: selectors and names of ports.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	checked, err := check(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(checked)
}

// check decodes all objects, and returns how many there are.
func check(in io.Reader) (checked int, _ error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme, monitoring.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	var wrong []error
	var objects []runtime.Object
	for documents := yaml.NewYAMLReader(bufio.NewReader(in)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return checked, errors.Join(append(wrong, fit(objects)...)...)
		}
		if err != nil {
			return checked, err
		}
		object, kind, err := strict.Decode(document, nil, nil)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("object %d, %v: %w", checked+1, kind, err))
		} else {
			objects = append(objects, object)
		}
		checked++
	}
}
