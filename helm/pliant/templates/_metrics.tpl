{{/* Of the operator's pods; empty where nobody is to follow them: monitors and these would read everything twice. */}}
{{- define "pliant.scrapeAnnotations" -}}
{{- if and .Values.metrics.scrapeAnnotations (not .Values.metrics.monitors.enabled) -}}
prometheus.io/scrape: "true"
prometheus.io/port: "8080"
prometheus.io/path: /metrics
{{- end -}}
{{- end -}}
