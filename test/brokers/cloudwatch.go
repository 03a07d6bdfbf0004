package brokers

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/fxamacker/cbor/v2"
)

// CloudWatch answers GetMetricStatistics as Amazon CloudWatch does, in the protocol of the
// SDK: Smithy RPC v2 with CBOR. It has one region and one user, and proves each signature.
// Set its fields before it serves.
type CloudWatch struct {
	Region, AccessKey, SecretKey string
	// Denied is whether the user lacks the right to GetMetricStatistics.
	Denied bool
	// Broken is whether each request that is allowed ends in an internal error.
	Broken bool
	// Delay of each answer.
	Delay time.Duration
	// Metrics are all values that were published.
	Metrics []MetricValue
}

// MetricValue is one value of a metric that has one dimension.
type MetricValue struct {
	Namespace, Metric, Dimension, Of string
	At                               time.Time
	Value                            float64
}

// BesideSQS has both services at one address, as LocalStack does.
func (c *CloudWatch) BesideSQS(s *SQS) http.Handler {
	services := http.NewServeMux()
	services.Handle(getMetricStatistics, c)
	services.Handle("/", httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.Address()}))
	return services
}

const (
	getMetricStatistics = "/service/GraniteServiceVersion20100801/operation/GetMetricStatistics"
	protocolHeader      = "Smithy-Protocol"
	protocolName        = "rpc-v2-cbor"
	mediaType           = "application/cbor"
)

// statisticsQuestion is the input of GetMetricStatistics.
type statisticsQuestion struct {
	Namespace, MetricName string
	Dimensions            []struct{ Name, Value string }
	StartTime, EndTime    time.Time
	Period                int64 // seconds
	Statistics            []string
}

// datapoint is the highest value of one period.
type datapoint struct {
	Timestamp time.Time
	Maximum   float64
	Unit      string
}

// serviceError is an error of the service: its code and the status of HTTP.
type serviceError struct {
	code   string
	status int
}

// ServeHTTP answers one request.
func (c *CloudWatch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	select {
	case <-time.After(c.Delay):
	case <-r.Context().Done():
		return
	}
	datapoints, refused := c.answer(r, body)
	w.Header().Set(protocolHeader, protocolName)
	w.Header().Set("Content-Type", mediaType)
	if refused != nil {
		w.Header().Set("X-Amzn-Query-Error", refused.code+";Sender")
		w.WriteHeader(refused.status)
		write(w, map[string]string{"__type": "com.amazonaws.cloudwatch#" + refused.code, "message": "refused"})
		return
	}
	write(w, map[string]any{"Label": "ApproximateAgeOfOldestMessage", "Datapoints": datapoints})
}

func write(w io.Writer, value any) {
	mode, err := cbor.EncOptions{Time: cbor.TimeUnixDynamic, TimeTag: cbor.EncTagRequired}.EncMode()
	if err != nil {
		panic(err) // the options are constant
	}
	_ = mode.NewEncoder(w).Encode(value) // the client may be gone
}

func (c *CloudWatch) answer(r *http.Request, body []byte) ([]datapoint, *serviceError) {
	if r.Method != http.MethodPost || r.Header.Get(protocolHeader) != protocolName || r.Header.Get("Content-Type") != mediaType {
		return nil, &serviceError{"UnknownOperationException", http.StatusNotFound}
	}
	if refused := c.authenticate(r, body); refused != nil {
		return nil, refused
	}
	strict, err := cbor.DecOptions{ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	var question statisticsQuestion
	switch err := strict.Unmarshal(body, &question); {
	case c.Denied:
		return nil, &serviceError{"AccessDenied", http.StatusForbidden}
	case c.Broken:
		return nil, &serviceError{"InternalServiceFault", http.StatusInternalServerError}
	case err != nil:
		return nil, &serviceError{"SerializationException", http.StatusBadRequest}
	case question.Namespace == "" || question.MetricName == "" || question.StartTime.IsZero() || question.EndTime.IsZero():
		return nil, &serviceError{"MissingParameter", http.StatusBadRequest}
	case !question.StartTime.Before(question.EndTime):
		return nil, &serviceError{"InvalidParameterCombination", http.StatusBadRequest}
	case question.Period <= 0 || question.Period%60 != 0, !slices.Equal(question.Statistics, []string{"Maximum"}):
		return nil, &serviceError{"InvalidParameterValue", http.StatusBadRequest}
	}
	return c.statistics(question), nil
}

// statistics has one datapoint for each period with a value, in no order that a client
// could rely on.
func (c *CloudWatch) statistics(question statisticsQuestion) []datapoint {
	highest := map[time.Time]float64{}
	for _, value := range c.Metrics {
		at := value.At.Truncate(time.Duration(question.Period) * time.Second)
		if value.Namespace != question.Namespace || value.Metric != question.MetricName || len(question.Dimensions) != 1 ||
			question.Dimensions[0].Name != value.Dimension || question.Dimensions[0].Value != value.Of ||
			at.Before(question.StartTime) || !at.Before(question.EndTime) {
			continue
		}
		if known, found := highest[at]; !found || value.Value > known {
			highest[at] = value.Value
		}
	}
	datapoints := []datapoint{}
	for at, value := range highest {
		datapoints = append(datapoints, datapoint{at, value, "Seconds"})
	}
	return datapoints
}

// authenticate proves that the request is signed (Signature Version 4) with the user's
// secret, for CloudWatch in this region and now.
func (c *CloudWatch) authenticate(r *http.Request, body []byte) *serviceError {
	authorization := r.Header.Get("Authorization")
	fields := strings.FieldsFunc(strings.TrimPrefix(authorization, "AWS4-HMAC-SHA256 "), func(r rune) bool { return r == ',' || r == ' ' })
	if len(fields) != 3 {
		return &serviceError{"MissingAuthenticationToken", http.StatusForbidden}
	}
	mismatch := &serviceError{"SignatureDoesNotMatch", http.StatusForbidden}
	scope := strings.Split(strings.TrimPrefix(fields[0], "Credential="), "/")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	switch {
	case scope[0] != c.AccessKey:
		return &serviceError{"InvalidClientTokenId", http.StatusForbidden}
	case err != nil, time.Since(at).Abs() > 5*time.Minute:
		return mismatch
	case !slices.Equal(scope[1:], []string{at.Format("20060102"), c.Region, "monitoring", "aws4_request"}):
		return mismatch
	}
	again := r.Clone(r.Context())
	again.Header = http.Header{}
	again.ContentLength = 0
	for name := range strings.SplitSeq(strings.TrimPrefix(fields[1], "SignedHeaders="), ";") {
		if name == "content-length" {
			again.ContentLength = r.ContentLength
		} else if values := r.Header.Values(name); name != "host" {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	digest := sha256.Sum256(body)
	user := aws.Credentials{AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey}
	err = v4.NewSigner().SignHTTP(r.Context(), user, again, hex.EncodeToString(digest[:]), "monitoring", c.Region, at)
	if err != nil || again.Header.Get("Authorization") != authorization {
		return mismatch
	}
	return nil
}
