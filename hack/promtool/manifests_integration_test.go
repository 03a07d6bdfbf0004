//go:build integration

package promtool

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// built reads the one object of a kind that a kustomization builds, and no field that the
// kind does not have.
func built(t *testing.T, directory, kind string, into any) {
	t.Helper()
	command := exec.Command("go", "tool", "-modfile=hack/tools/go.mod", "kustomize", "build", directory)
	command.Dir = "../.."
	output, err := command.Output()
	if err != nil {
		t.Fatalf("kustomize build %s: %v", directory, err)
	}
	documents := slices.DeleteFunc(strings.Split(string(output), "\n---\n"), func(document string) bool {
		return !strings.Contains("\n"+document, "\nkind: "+kind+"\n")
	})
	if len(documents) != 1 {
		t.Fatalf("%s builds %d objects of kind %s, want 1", directory, len(documents), kind)
	}
	if err := yaml.UnmarshalStrict([]byte(documents[0]), into); err != nil {
		t.Fatalf("%s, %s: %v", directory, kind, err)
	}
}

// What config/prometheus selects is what config/default installs.
func TestTheServiceMonitorFindsTheManager(t *testing.T) {
	var (
		monitor monitoring.ServiceMonitor
		service core.Service
		manager apps.Deployment
	)
	built(t, "config/prometheus", "ServiceMonitor", &monitor)
	built(t, "config/default", "Service", &service)
	built(t, "config/default", "Deployment", &manager)
	if monitor.Namespace != service.Namespace || len(monitor.Spec.NamespaceSelector.MatchNames) > 0 {
		t.Errorf("the monitor is in %s and the Service in %s: it looks in its own namespace", monitor.Namespace, service.Namespace)
	}
	if wanted := monitor.Spec.Selector.MatchLabels; len(wanted) == 0 || !labels.SelectorFromSet(wanted).Matches(labels.Set(service.Labels)) {
		t.Errorf("the monitor selects %v, the Service has %v", wanted, service.Labels)
	}
	if wanted := service.Spec.Selector; len(wanted) == 0 || !labels.SelectorFromSet(wanted).Matches(labels.Set(manager.Spec.Template.Labels)) {
		t.Errorf("the Service selects %v, the pod has %v", wanted, manager.Spec.Template.Labels)
	}
	ports := manager.Spec.Template.Spec.Containers[0].Ports
	for _, endpoint := range monitor.Spec.Endpoints {
		i := slices.IndexFunc(service.Spec.Ports, func(port core.ServicePort) bool { return port.Name == endpoint.Port })
		if i < 0 {
			t.Errorf("the Service has no port %s", endpoint.Port)
			continue
		}
		if target := service.Spec.Ports[i].TargetPort.StrVal; !slices.ContainsFunc(ports, func(port core.ContainerPort) bool { return port.Name == target }) {
			t.Errorf("the container has no port %s", target)
		}
	}
	if len(monitor.Spec.Endpoints) != 1 || monitor.Spec.Endpoints[0].HonorLabels != true {
		t.Errorf("endpoints %+v; without honorLabels the namespace of a resource would be the manager's", monitor.Spec.Endpoints)
	}
}

func TestThePrometheusRuleHasNoUnknownField(t *testing.T) {
	var rule monitoring.PrometheusRule
	built(t, "config/prometheus", "PrometheusRule", &rule)
	if want := len(alerts(t).Groups[0].Rules); len(rule.Spec.Groups) != 1 || len(rule.Spec.Groups[0].Rules) != want {
		t.Errorf("groups %+v, want one of %d rules", rule.Spec.Groups, want)
	}
}
