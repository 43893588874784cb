package functions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// A Function is what Lambda knows of a function.
type Function struct {
	Name      string
	Bootstrap string            // path of the binary
	Env       map[string]string // over Config.Env
	Timeout   time.Duration     // whole seconds, 1 s to 15 min; 0 is Lambda's default, 3 s
	MemoryMB  int               // told to the function, not enforced; 0 is 128
	// MaxConcurrency bounds the instances; 0 is 10. An invocation that finds all
	// of them busy is throttled.
	MaxConcurrency int
	// AsyncRetries is how often a failed asynchronous invocation is repeated: 0
	// is Lambda's default, 2; NoRetries is none.
	AsyncRetries int
	AsyncMaxAge  time.Duration // of an asynchronous event; 0 is Lambda's default, 6 h
}

// NoRetries as Function.AsyncRetries drops an event after its first failure.
const NoRetries = -1

// Config is what all functions of a Runner share.
type Config struct {
	RIE       string            // path of the emulator: EnsureRIE
	Dir       string            // for logs (Dir/logs/FUNCTION/INSTANCE.log) and temporary files
	Env       map[string]string // for every function: AWS_ENDPOINT_URL, credentials, ...
	Region    string            // default eu-west-1
	IdleAfter time.Duration     // an instance unused for so long ends; default 5 min
	OnLine    func(Line)        // each line a function prints; called concurrently for several instances
	OnDropped func(Dropped)     // each asynchronous event given up; may be nil
	Log       *slog.Logger      // default: none
	// Now and Sleep are the clock of idle times and asynchronous retries;
	// functions themselves run on the machine's.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

func (c Config) withDefaults() Config {
	if c.Region == "" {
		c.Region = "eu-west-1"
	}
	if c.IdleAfter == 0 {
		c.IdleAfter = 5 * time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f Function) withDefaults() Function {
	if f.Timeout == 0 {
		f.Timeout = 3 * time.Second
	}
	if f.MemoryMB == 0 {
		f.MemoryMB = 128
	}
	if f.MaxConcurrency == 0 {
		f.MaxConcurrency = 10
	}
	switch f.AsyncRetries {
	case 0:
		f.AsyncRetries = 2
	case NoRetries:
		f.AsyncRetries = 0
	}
	if f.AsyncMaxAge == 0 {
		f.AsyncMaxAge = 6 * time.Hour
	}
	return f
}

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// validate names every fault at once.
func (f Function) validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !functionName.MatchString(f.Name) {
		fault("name %q: want 1 to 64 letters, digits, - and _", f.Name)
	}
	if !filepath.IsAbs(f.Bootstrap) {
		fault("bootstrap %q: want an absolute path", f.Bootstrap)
	} else if info, err := os.Stat(f.Bootstrap); err != nil {
		fault("bootstrap: %w: build it first (make build)", err)
	} else if info.IsDir() || info.Mode()&0o111 == 0 {
		fault("bootstrap %s: want an executable file", f.Bootstrap)
	}
	if f.Timeout%time.Second != 0 || f.Timeout < time.Second || f.Timeout > 15*time.Minute {
		fault("timeout %s: want whole seconds, 1s to 15m", f.Timeout)
	}
	if f.MemoryMB < 128 || f.MemoryMB > 10240 {
		fault("memory %d MB: want 128 to 10240", f.MemoryMB)
	}
	if f.MaxConcurrency < 1 {
		fault("maximum concurrency %d: want 1 or more", f.MaxConcurrency)
	}
	if f.AsyncRetries < 0 || f.AsyncRetries > 2 {
		fault("asynchronous retries %d: want 1 or 2, or NoRetries", f.AsyncRetries)
	}
	if f.AsyncMaxAge < time.Minute || f.AsyncMaxAge > 6*time.Hour {
		fault("asynchronous maximum age %s: want 1m to 6h", f.AsyncMaxAge)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("function %s: %w", f.Name, errors.Join(errs...))
}

// environment is what an instance sees. Nothing is inherited but PATH: a
// function must not find the developer's credentials.
func environment(cfg Config, fn Function, id, tmp string) []string {
	env := map[string]string{
		"PATH":   os.Getenv("PATH"),
		"LANG":   "en_US.UTF-8",
		"TZ":     ":UTC",
		"HOME":   tmp,
		"TMPDIR": tmp,

		"AWS_REGION":                      cfg.Region,
		"AWS_DEFAULT_REGION":              cfg.Region,
		"AWS_EC2_METADATA_DISABLED":       "true", // Lambda has none, and nothing may leave this machine
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_FUNCTION_NAME":        fn.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(fn.MemoryMB),
		"AWS_LAMBDA_FUNCTION_TIMEOUT":     strconv.Itoa(int(fn.Timeout / time.Second)), // for the emulator
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + fn.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      id,
		"LAMBDA_TASK_ROOT":                filepath.Dir(fn.Bootstrap),
		"_HANDLER":                        "bootstrap",
	}
	maps.Copy(env, cfg.Env)
	maps.Copy(env, fn.Env)
	// With this variable the emulator is another program, one with its own flags.
	delete(env, "AWS_LAMBDA_MAX_CONCURRENCY")
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}
