{{- define "agctl.name" -}}
{{- if contains "agctl" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-agctl" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "agctl.selector" -}}
app.kubernetes.io/name: agctl
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "agctl.labels" -}}
{{ include "agctl.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "agctl.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "agctl.name" .) }}
{{- end }}

{{- define "agctl.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}{{ else }}{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* A duration such as 1m30s, in seconds. */ -}}
{{- define "agctl.seconds" -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+(?:ms|s|m|h|d)" . -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0) $unit)) -}}
{{- end -}}
{{ $sum }}
{{- end }}

{{- /* Mistakes that Kubernetes would not report. */ -}}
{{- define "agctl.check" -}}
{{- $process := .Values.config.config | default dict -}}
{{- $deadline := include "agctl.seconds" ($process.connectionTerminationDeadline | default "10s" | toString) | float64 -}}
{{- if le (.Values.terminationGracePeriodSeconds | float64) (addf $deadline .Values.preStopSeconds) -}}
{{- fail (printf "terminationGracePeriodSeconds is %v: it must be more than preStopSeconds (%v) and config.config.connectionTerminationDeadline (%vs) together, or pods are killed while they finish requests" .Values.terminationGracePeriodSeconds .Values.preStopSeconds $deadline) -}}
{{- end -}}
{{- if and .Values.persistence.enabled (or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1)) -}}
{{- fail "persistence is for SQLite, which one replica has open: set replicaCount: 1 and autoscaling.enabled: false, or use PostgreSQL without persistence" -}}
{{- end -}}
{{- $names := list -}}
{{- range .Values.ports }}{{ $names = append $names .name }}{{ end -}}
{{- range $key := list "ingress" "httpRoute" -}}
{{- $entry := get $.Values $key -}}
{{- if and $entry.enabled (not (has $entry.port $names)) -}}
{{- fail (printf "%s.port is %s, but ports has only: %s" $key $entry.port (join ", " $names)) -}}
{{- end -}}
{{- end -}}
{{- end }}
