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
