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

{{- /* The file of the gateway. The sample is no default value: Helm would merge its route with those of the operator. */ -}}
{{- define "agctl.config" -}}
{{- if omit .Values.config "config" -}}
{{ toYaml .Values.config }}
{{- else -}}
{{ toYaml .Values.config }}
gateways:
  default:
    port: 8080
    routes:
      - policies:
          directResponse:
            body: "agctl runs. Set `config` in the values of the chart.\n"
{{- end -}}
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

{{- /* A volume would hide what the image or the chart has there. */ -}}
{{- define "agctl.checkPath" -}}
{{- if regexMatch "^/+(etc|tmp|(etc/agctl|app|usr|lib|bin|dev|proc|sys)(/.*)?)/*$" . -}}
{{- fail (printf "mountPath: %s belongs to the image or to the chart, which has the configuration in /etc/agctl and an empty /tmp: choose another path, such as /data" .) -}}
{{- end -}}
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
{{- $database := ($process.database | default dict).url | default "" | toString -}}
{{- if and (hasPrefix "sqlite:" $database) (not .Values.persistence.enabled) (not .Values.extraVolumeMounts) -}}
{{- fail (printf "config.config.database.url is %s, and the file system of the container is read-only: set persistence.enabled: true with replicaCount: 1 and a url below persistence.mountPath, such as sqlite:///data/agctl.db, or use PostgreSQL for several replicas" $database) -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail (printf "autoscaling.minReplicas is %v, which is more than autoscaling.maxReplicas (%v)" .Values.autoscaling.minReplicas .Values.autoscaling.maxReplicas) -}}
{{- end -}}
{{- $names := list -}}
{{- range .Values.ports }}
{{- if has .name $names }}{{ fail (printf "two of `ports` have the name %s" .name) }}{{ end -}}
{{- $names = append $names .name }}
{{- end -}}
{{- range .Values.ports }}
{{- if has .name (list "metrics" "health") }}{{ fail (printf "ports: the chart has a port with the name %s: choose another name" .name) }}{{ end -}}
{{- if has (int .targetPort) (list 15020 15021) }}{{ fail (printf "ports: %v is the port of metrics (15020) or of probes (15021), which no service publishes" .targetPort) }}{{ end -}}
{{- end -}}
{{- $volumes := list -}}
{{- range concat .Values.files .Values.extraVolumes }}
{{- if has .name (list "config" "tmp" "data") }}{{ fail (printf "files, extraVolumes: the chart has a volume with the name %s: choose another name" .name) }}{{ end -}}
{{- if has .name $volumes }}{{ fail (printf "two of `files` and `extraVolumes` have the name %s" .name) }}{{ end -}}
{{- $volumes = append $volumes .name }}
{{- end -}}
{{- $paths := list -}}
{{- if .Values.persistence.enabled }}{{ include "agctl.checkPath" .Values.persistence.mountPath }}{{ $paths = append $paths (trimSuffix "/" .Values.persistence.mountPath) }}{{ end -}}
{{- range concat .Values.files .Values.extraVolumeMounts }}
{{- $path := trimSuffix "/" .mountPath -}}
{{- include "agctl.checkPath" .mountPath }}
{{- if has $path $paths }}{{ fail (printf "two volumes are mounted at %s" .mountPath) }}{{ end -}}
{{- $paths = append $paths $path }}
{{- end -}}
{{- range $key := list "ingress" "httpRoute" -}}
{{- $entry := get $.Values $key -}}
{{- if and $entry.enabled (not (has $entry.port $names)) -}}
{{- fail (printf "%s.port is %s, but ports has only: %s" $key $entry.port (join ", " $names)) -}}
{{- end -}}
{{- end -}}
{{- end }}
