package main

import (
	"errors"
	"fmt"
	"maps"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// target is what a selector may find: pods, or services.
type target struct {
	labels labels.Set
	ports  map[string]bool // by name
}

// fit returns what of objects refers to nothing among them.
func fit(objects []runtime.Object) (wrong []error) {
	var pods, services []target
	for _, o := range objects {
		switch o := o.(type) {
		case *apps.Deployment:
			pods = append(pods, podOf(o.Spec.Template))
		case *apps.StatefulSet:
			pods = append(pods, podOf(o.Spec.Template))
		case *core.Service:
			ports := map[string]bool{}
			for _, p := range o.Spec.Ports {
				ports[p.Name] = true
			}
			services = append(services, target{o.Labels, ports})
		}
	}
	for _, o := range objects {
		var name string
		tell := func(err error) {
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			}
		}
		switch o := o.(type) {
		case *apps.Deployment:
			name = "Deployment " + o.Name
			tell(workload(o.Spec.Selector, o.Spec.Template))
		case *apps.StatefulSet:
			name = "StatefulSet " + o.Name
			tell(workload(o.Spec.Selector, o.Spec.Template))
		case *core.Service:
			name = "Service " + o.Name
			for _, p := range o.Spec.Ports {
				tell(finds(&meta.LabelSelector{MatchLabels: o.Spec.Selector}, pods, p.TargetPort))
			}
		case *policy.PodDisruptionBudget:
			name = "PodDisruptionBudget " + o.Name
			tell(finds(o.Spec.Selector, pods))
		case *networking.NetworkPolicy:
			name = "NetworkPolicy " + o.Name
			tell(finds(&o.Spec.PodSelector, pods))
			for _, rule := range o.Spec.Ingress {
				for _, p := range rule.Ports {
					tell(finds(&o.Spec.PodSelector, pods, *p.Port))
				}
			}
		case *monitoring.ServiceMonitor:
			name = "ServiceMonitor " + o.Name
			for _, e := range o.Spec.Endpoints {
				tell(finds(&o.Spec.Selector, services, intstr.FromString(e.Port)))
			}
		default:
			name = fmt.Sprintf("%T", o)
			tell(errors.New("nothing checks whether it fits the others"))
		}
	}
	return wrong
}

func podOf(t core.PodTemplateSpec) target {
	ports := map[string]bool{}
	for _, c := range t.Spec.Containers {
		maps.Copy(ports, portsOf(c))
	}
	return target{t.Labels, ports}
}

func portsOf(c core.Container) map[string]bool {
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	return ports
}

// workload refuses pods that their workload does not select, as a cluster does, and probes of ports that
// their container does not have.
func workload(selector *meta.LabelSelector, t core.PodTemplateSpec) error {
	if err := finds(selector, []target{podOf(t)}); err != nil {
		return err
	}
	for _, c := range t.Spec.Containers {
		for _, p := range []*core.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			if p != nil && p.HTTPGet != nil && !portsOf(c)[p.HTTPGet.Port.String()] {
				return fmt.Errorf("a probe asks the port %s, which its container does not have", &p.HTTPGet.Port)
			}
		}
	}
	return nil
}

// finds refuses a selector that finds nothing, or nothing with these ports.
func finds(selector *meta.LabelSelector, all []target, ports ...intstr.IntOrString) error {
	s, err := meta.LabelSelectorAsSelector(selector) // of nil: one that finds nothing
	if err != nil {
		return err
	}
	if s.Empty() {
		return errors.New("its selector finds everything")
	}
	found := map[string]bool{}
	matches := false
	for _, one := range all {
		if s.Matches(one.labels) {
			matches = true
			maps.Copy(found, one.ports)
		}
	}
	if !matches {
		return fmt.Errorf("its selector %s finds nothing", s)
	}
	for _, p := range ports {
		if !found[p.String()] {
			return fmt.Errorf("what %s finds has no port %s", s, &p)
		}
	}
	return nil
}
