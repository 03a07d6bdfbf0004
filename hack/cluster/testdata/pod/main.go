// Command pod is what the end-to-end test of the local cluster runs in pods.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const credentials = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == "serve":
		return http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hello from a pod")
		}))
	case len(arguments) == 1 && arguments[0] == "whoami":
		_, err := fmt.Println("user", os.Getuid())
		return err
	case len(arguments) == 2 && arguments[0] == "report":
		return report(arguments[1])
	}
	return fmt.Errorf("unknown arguments %q", arguments)
}

// report asks the machine, another pod through its Service, and the API, and leaves the answers as the termination message.
func report(machine string) error {
	fmt.Println("the report begins")
	result := map[string]any{"user": os.Getuid(), "machine": get(http.DefaultClient, machine, "")}
	result["service"] = get(http.DefaultClient, fmt.Sprintf("http://%s:%s/", os.Getenv("SERVER_SERVICE_HOST"), os.Getenv("SERVER_SERVICE_PORT")), "")
	result["rootIsReadOnly"] = os.WriteFile("/written", nil, 0o600) != nil
	result["api"] = askAPI()
	message, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return os.WriteFile("/dev/termination-log", message, 0o600)
}

func askAPI() string {
	token, err := os.ReadFile(credentials + "token")
	if err != nil {
		return err.Error()
	}
	authority, err := os.ReadFile(credentials + "ca.crt")
	if err != nil {
		return err.Error()
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	url := fmt.Sprintf("https://%s:%s/api/v1/namespaces/restricted/configmaps/greeting", os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	answer := get(client, url, strings.TrimSpace(string(token)))
	var object struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(answer), &object); err != nil {
		return answer
	}
	return object.Data["text"]
}

func get(client *http.Client, url, token string) string {
	client.Timeout = 10 * time.Second
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
