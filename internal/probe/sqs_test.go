package probe

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// The emulator takes every key, so these are answers of the service as it documents them:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
func TestWhatSQSRefuses(t *testing.T) {
	for code, test := range map[string]struct {
		status int
		reason string
		says   string
	}{
		"com.amazonaws.sqs#QueueDoesNotExist":                 {400, ReasonQueueNotFound, "no queue orders in the region eu-central-1"},
		"com.amazon.coral.service#InvalidClientTokenId":       {403, ReasonAuthenticationFailed, "refused the credentials"},
		"com.amazon.coral.service#InvalidSignatureException":  {403, ReasonAuthenticationFailed, "refused the credentials"},
		"com.amazon.coral.service#ExpiredTokenException":      {403, ReasonAuthenticationFailed, "refused the credentials"},
		"com.amazon.coral.service#MissingAuthenticationToken": {403, ReasonAuthenticationFailed, "refused the credentials"},
		"com.amazon.coral.service#AccessDeniedException":      {400, ReasonPermissionDenied, "allow sqs:GetQueueUrl and sqs:GetQueueAttributes on the queue orders"},
		"com.amazon.coral.service#InternalFailure":            {500, ReasonUnexpectedError, "status 500"},
		"com.amazon.coral.service#RequestThrottled":           {400, ReasonUnexpectedError, "RequestThrottled"},
	} {
		t.Run(code, func(t *testing.T) {
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				w.WriteHeader(test.status)
				_, _ = fmt.Fprintf(w, `{"__type": %q, "message": "the key hunter2 is not known"}`, code)
			}))
			defer service.Close()
			target, err := NewTarget("orders", redelivery.SQS, "sqs://key:hunter2@"+strings.TrimPrefix(service.URL, "http://")+"/orders?sslmode=disable&region=eu-central-1", Place{Queue: "orders"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Probe(t.Context(), target)
			var failure *Failure
			if !errors.As(err, &failure) || failure.Reason != test.reason || !strings.Contains(failure.Message, test.says) || strings.Contains(failure.Message, "hunter2") {
				t.Errorf("%v (%+v), want %s that says %q", err, failure, test.reason, test.says)
			}
		})
	}
}
