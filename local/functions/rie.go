package functions

import (
	"context"

	"github.com/elbridge/elbridge/local/functions/toolcache"
)

// EnsureRIE returns the path of the Lambda Runtime Interface Emulator, building
// it into the user's cache directory if it is not there yet (seconds, plus the
// download of its modules). progress gets what happens in plain words; nil keeps
// quiet. The working directory must be in elbridge's source tree.
func EnsureRIE(ctx context.Context, progress func(string)) (string, error) {
	cache, err := toolcache.Default(progress)
	if err != nil {
		return "", err
	}
	return cache.Ensure(ctx, "aws-lambda-rie")
}
