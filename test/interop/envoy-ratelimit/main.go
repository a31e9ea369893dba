// Envoy's rate-limit service. Its settings are environment variables.
package main

import (
	"github.com/envoyproxy/ratelimit/src/service_cmd/runner"
	"github.com/envoyproxy/ratelimit/src/settings"
)

func main() {
	service := runner.NewRunner(settings.NewSettings())
	service.Run()
}
