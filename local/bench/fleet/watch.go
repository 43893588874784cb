package fleet

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// watch tells of changes after a revision until its time is over or the client
// goes, and of the revision itself by bookmarks.
func (a *api) watch(w http.ResponseWriter, r *http.Request, c scope, q url.Values) {
	a.stats.Watches.Add(1)
	revision, err := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	if err != nil {
		a.refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "resourceVersion: "+err.Error()+": the fleet's watches want one")
		return
	}
	lasts := watchFor
	if s, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil && s > 0 {
		lasts = time.Duration(s) * time.Second
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
	w.WriteHeader(http.StatusOK)
	end := time.NewTimer(lasts)
	defer end.Stop()
	marks := time.NewTicker(bookmarkEvery)
	defer marks.Stop()
	out := http.NewResponseController(w)
	everything := c.namespace == "" && c.labels.Empty() && c.fields.Empty()
	for {
		changes, next, ok := a.since(revision)
		if !ok {
			a.gone(w)
			return
		}
		for _, ch := range changes {
			if everything || c.has(a.ids[ch.pod]) {
				a.stats.Events.Add(1)
				if _, err := w.Write(ch.frame); err != nil {
					return
				}
			}
			revision = ch.revision
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-next:
		case <-marks.C:
			if q.Get("allowWatchBookmarks") == "true" {
				if mark, err := bookmark(revision); err != nil || !written(w, mark) {
					return
				}
			}
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func written(w http.ResponseWriter, b []byte) bool {
	_, err := w.Write(b)
	return err == nil
}

// gone says within the stream that the revision is compacted.
func (a *api) gone(w http.ResponseWriter) {
	object, err := refusal(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
	if err != nil {
		return
	}
	if f, err := frame("ERROR", object); err == nil {
		written(w, f)
	}
}
