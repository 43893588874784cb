package telemetry_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/smithy-go/logging"

	"github.com/elbridge/elbridge/pkg/telemetry"
)

func TestSDKLog(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelInfo:  "",
		slog.LevelDebug: `"level":"DEBUG","msg":"AWS SDK","class":"WARN","text":"failed to discard 3 bytes"}`,
	} {
		var out bytes.Buffer
		telemetry.SDKLog(telemetry.NewLogger(&out, level)).Logf(logging.Warn, "failed to discard %d bytes", 3)
		if got := strings.TrimSpace(out.String()); !strings.HasSuffix(got, want) || (got == "") != (want == "") {
			t.Errorf("at %s: %s, want %s", level, got, want)
		}
	}
}
