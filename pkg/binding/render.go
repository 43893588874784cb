package binding

import "time"

// Render returns exactly what EventBridge would deliver to the target for this event.
func Render(rule Rule, t Target, event []byte, ingestion time.Time) ([]byte, error) {
	return nil, errTODO
}
