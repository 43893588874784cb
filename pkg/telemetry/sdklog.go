package telemetry

import (
	"fmt"
	"log/slog"

	"github.com/aws/smithy-go/logging"
)

// SDKLog brings what the AWS SDK says into log, at debug level whatever the SDK
// calls it: errors come back from its calls, and what else it warns of, such as a
// long poll that was cut off, is no news. Without it the SDK writes to stderr.
func SDKLog(log *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(class logging.Classification, format string, args ...any) {
		log.Debug("AWS SDK", "class", string(class), "text", fmt.Sprintf(format, args...))
	})
}
