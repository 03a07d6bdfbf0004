package assessment

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/messaginginbox/operator/api/v1alpha1"
)

// A test of the controllers asks a real API server the same.
func TestInvalidJobs(t *testing.T) {
	for name, test := range map[string]struct{ job, says string }{
		"nothing declared":             {"{}", ""},
		"all of it":                    {"{podLabels: {app.example.com/team: orders}, podAnnotations: {any/thing: at all}, nodeSelector: {disk: ssd}, serviceAccountName: pruner, priorityClassName: low, tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}, {operator: Exists}, {key: a, value: b}], resources: {requests: {cpu: 10m, memory: 32Mi, example.com/gpu: 1}, limits: {memory: 32Mi, example.com/gpu: 1}}}", ""},
		"a label's key":                {"{podLabels: {'not a key': x}}", `spec.pruning.job.podLabels: Invalid value: "not a key"`},
		"a label's value":              {"{podLabels: {team: 'a b'}}", `spec.pruning.job.podLabels: Invalid value: "a b"`},
		"a label of Kubernetes":        {"{podLabels: {job-name: mine}}", "spec.pruning.job.podLabels[job-name]: Forbidden: Kubernetes sets it on the pods of a Job"},
		"an annotation's key":          {"{podAnnotations: {'a b': x}}", `spec.pruning.job.podAnnotations: Invalid value: "a b"`},
		"a node selector":              {"{nodeSelector: {disk: 'a b'}}", `spec.pruning.job.nodeSelector: Invalid value: "a b"`},
		"a toleration without its key": {"{tolerations: [{value: b}]}", "spec.pruning.job.tolerations[0].operator: Invalid value: \"\": it must be Exists when key is empty"},
		"a toleration of all values":   {"{tolerations: [{key: a, operator: Exists, value: b}]}", "spec.pruning.job.tolerations[0].value: Invalid value: \"b\": it must be empty"},
		"an effect":                    {"{tolerations: [{key: a, effect: Never}]}", `spec.pruning.job.tolerations[0].effect: Unsupported value: "Never"`},
		"seconds without NoExecute":    {"{tolerations: [{key: a, tolerationSeconds: 5}]}", "it must be NoExecute when tolerationSeconds is set"},
		"requests above limits":        {"{resources: {requests: {memory: 64Mi}, limits: {memory: 32Mi}}}", `spec.pruning.job.resources.requests[memory]: Invalid value: "64Mi": it must be at most the limit of 32Mi`},
		"a negative request":           {"{resources: {requests: {cpu: -1}}}", "spec.pruning.job.resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"},
		"a resource that is none":      {"{resources: {limits: {mem: 1}}}", "spec.pruning.job.resources.limits[mem]: Invalid value: \"mem\": it must be cpu, memory"},
		"a device without its limit":   {"{resources: {requests: {example.com/gpu: 1}}}", "it must equal the limit"},
		"claims":                       {"{resources: {claims: [{name: a}]}}", "spec.pruning.job.resources.claims: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := declared(t, "pruning: {job: "+test.job+"}\n  transports: [{name: a, type: amqp}]")
			problem := InvalidJob(spec)
			if !strings.Contains(problem, test.says) || (test.says == "") != (problem == "") {
				t.Errorf("got %q, want %q", problem, test.says)
			}
			if problem == "" {
				return
			}
			healthy := PruningHealthy(spec, PruningFacts{})
			mustBe(t, healthy, metav1.ConditionFalse, v1alpha1.ReasonInvalidJob, test.says)
			mustBe(t, Summarize([]metav1.Condition{healthy})[1], metav1.ConditionTrue, v1alpha1.ReasonInvalidJob, test.says) // Stalled
		})
	}
}
