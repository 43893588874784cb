package smoke

import (
	"context"
	"strings"
	"time"
)

func wrongGroup(ctx context.Context, r *Runner) (string, error) {
	wrong := strings.Replace(r.web, "targetgroup/web/", "targetgroup/gone/", 1)
	if err := r.S.AWS.Rule(ctx, "wrong", `{"cluster":["local"],"namespace":["shop"],"labels":{"app":["web"]}}`, r.constants(wrong, "")); err != nil {
		return "", err
	}
	start := time.Now()
	if err := r.scale(ctx, "web", 4); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 4}); err != nil {
		return "", err
	}
	if err := r.records(ctx, start, "Binding Invalid", "targetgroup/gone/"); err != nil {
		return "", err
	}
	note := "no hint, so no dead letter"
	if r.hints() {
		var err error
		if note, err = r.deadLetter(ctx, "not found"); err != nil {
			return note, err
		}
	}
	if err := r.dropRule(ctx, "wrong"); err != nil {
		return "", err
	}
	if err := r.scale(ctx, "web", 2); err != nil {
		return "", err
	}
	return note, r.exactly(ctx, want{pods: 2})
}

func foreignGroup(ctx context.Context, r *Runner) (string, error) {
	group, err := r.group(ctx, "foreign", false, "")
	if err != nil {
		return "", err
	}
	if err := r.apply(ctx, pod("stranger", "{app: foreign}", "")); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{group: group, selector: "app=foreign", pods: 1}); err != nil {
		return "", err
	}
	p, err := r.named(ctx, "stranger")
	if err != nil {
		return "", err
	}
	key := p.Status.PodIP + ":8080"
	start := time.Now()
	if err := r.deletePod(ctx, "stranger", -1); err != nil {
		return "", err
	}
	// A hint's removal is held. To a comparison a target that is not ours is no
	// difference that could be mended: it is reported.
	told := []string{"Removal Held", p.Status.PodIP}
	if !r.hints() {
		told = []string{"Resync Completed", p.Status.PodIP, `\"action\":\"reported\"`}
	}
	if err := r.records(ctx, start, told...); err != nil {
		return "", err
	}
	return "", r.stays(ctx, r.quiet(), group, "the target of a group that is not ours stays", func(t map[string]string) bool {
		return t[key] != "" && t[key] != "draining"
	})
}

func observed(ctx context.Context, r *Runner) (string, error) {
	group, err := r.group(ctx, "observed", true, `,"mode":"observe"`)
	if err != nil {
		return "", err
	}
	start := time.Now()
	if err := r.apply(ctx, pod("watched", "{app: observed}", "")); err != nil {
		return "", err
	}
	if err := r.records(ctx, start, "Targets Changed", `\"wouldDo\":true`, "shop/watched"); err != nil {
		return "", err
	}
	return "", r.stays(ctx, r.quiet(), group, "observing changes nothing", func(t map[string]string) bool { return len(t) == 0 })
}
