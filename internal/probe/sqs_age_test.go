package probe

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// recorder keeps the request that it is asked to send, and sends nothing.
type recorder struct{ sent *http.Request }

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.sent = request
	return nil, errors.New("not sent")
}

func TestCloudWatchIsAskedAtItsOwnAddressUnlessAllServicesAreAtOne(t *testing.T) {
	for name, tested := range map[string]struct {
		dsn, asks, signedFor string
	}{
		"the URL of a queue":         {"https://sqs.eu-central-1.amazonaws.com/123456789012/orders", "https://monitoring.eu-central-1.amazonaws.com", "eu-central-1"},
		"the region of the DSN":      {"sqs://default/orders?region=us-east-2", "https://monitoring.us-east-2.amazonaws.com", "us-east-2"},
		"no region":                  {"sqs://default/orders", "https://monitoring.eu-west-1.amazonaws.com", "eu-west-1"},
		"China":                      {"sqs://sqs.cn-north-1.amazonaws.com.cn/orders", "https://monitoring.cn-north-1.amazonaws.com.cn", "cn-north-1"},
		"both kinds of addresses":    {"sqs://sqs.eu-west-2.api.aws/orders?region=eu-west-2", "https://monitoring.eu-west-2.amazonaws.com", "eu-west-2"},
		"a port":                     {"sqs://sqs.eu-west-2.amazonaws.com:443/orders?region=eu-west-2", "https://monitoring.eu-west-2.amazonaws.com", "eu-west-2"},
		"an endpoint in a VPC":       {"sqs://vpce-0a1-b2.sqs.eu-west-3.vpce.amazonaws.com/orders?region=eu-west-3", "https://monitoring.eu-west-3.amazonaws.com", "eu-west-3"},
		"such an endpoint by option": {"sqs://default/orders?endpoint=https://vpce-0a1-b2.sqs.eu-west-3.vpce.amazonaws.com&region=eu-west-3", "https://monitoring.eu-west-3.amazonaws.com", "eu-west-3"},
		"LocalStack":                 {"sqs://localhost:4566/orders?sslmode=disable", "http://localhost:4566", "eu-west-1"},
		"LocalStack by option":       {"sqs://default/orders?endpoint=http://localstack:4566&region=us-east-1", "http://localstack:4566", "us-east-1"},
		"a name that only looks so":  {"sqs://queues-amazonaws.com/orders", "https://queues-amazonaws.com", "eu-west-1"},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := NewTarget("orders", redelivery.SQS, tested.dsn+separator(tested.dsn)+"access_key=key&secret_key=hunter2", Place{})
			if err != nil {
				t.Fatal(err)
			}
			place, err := readSQS(target)
			if err != nil {
				t.Fatal(err)
			}
			sent := &recorder{}
			place.http = &http.Client{Transport: sent}
			place.readAge(t.Context(), target, &Observation{})
			if sent.sent == nil {
				t.Fatal("nothing was asked")
			}
			if got := sent.sent.URL.Scheme + "://" + sent.sent.URL.Host; got != tested.asks {
				t.Errorf("asks %s, want %s", got, tested.asks)
			}
			if scope := "/" + tested.signedFor + "/monitoring/aws4_request"; !strings.Contains(sent.sent.Header.Get("Authorization"), scope) {
				t.Errorf("signed %q, want for %s", sent.sent.Header.Get("Authorization"), scope)
			}
		})
	}
}

func separator(dsn string) string {
	if strings.Contains(dsn, "?") {
		return "&"
	}
	return "?"
}
