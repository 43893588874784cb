package dataplane

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// serverName is what an application load balancer calls itself in its own
// answers, and only there.
const serverName = "awselb/2.0"

// titles of the answers that the load balancer gives for its targets.
var titles = map[int]string{
	http.StatusBadGateway:         "502 Bad Gateway",
	http.StatusServiceUnavailable: "503 Service Temporarily Unavailable",
	http.StatusGatewayTimeout:     "504 Gateway Time-out",
	460:                           "460",
}

func answer(w http.ResponseWriter, status int) {
	title := titles[status]
	h := w.Header()
	h.Set("Server", serverName)
	h.Set("Content-Type", "text/html")
	body := "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" + title + "</h1></center>\r\n</body>\r\n</html>\r\n"
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func fixed(w http.ResponseWriter, f *route.Fixed) {
	h := w.Header()
	h.Set("Server", serverName)
	if f.ContentType != "" {
		h.Set("Content-Type", f.ContentType)
	}
	h.Set("Content-Length", strconv.Itoa(len(f.Body)))
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Body)
}

// redirect sends the client to the URL that the action describes.
func redirect(w http.ResponseWriter, r *http.Request, to *route.Redirect) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	fill := strings.NewReplacer(
		"#{protocol}", "http", "#{host}", host, "#{port}", localPort(r),
		"#{path}", strings.TrimPrefix(r.URL.EscapedPath(), "/"), "#{query}", r.URL.RawQuery,
	)
	scheme := strings.ToLower(fill.Replace(to.Protocol))
	url := scheme + "://" + fill.Replace(to.Host) + ":" + fill.Replace(to.Port) + fill.Replace(to.Path)
	if q := fill.Replace(to.Query); q != "" {
		url += "?" + q
	}
	h := w.Header()
	h.Set("Server", serverName)
	h.Set("Location", url)
	h.Set("Content-Length", "0")
	w.WriteHeader(to.Status)
}

// traceID is the trace header of a request that came with the given one.
func traceID(came string, now time.Time) string {
	id := make([]byte, 12)
	_, _ = rand.Read(id) // never fails
	own := fmt.Sprintf("1-%08x-%s", now.Unix(), hex.EncodeToString(id))
	switch {
	case came == "":
		return "Root=" + own
	case strings.Contains(came, "Root="):
		return "Self=" + own + ";" + came
	}
	return came + ";Root=" + own
}
