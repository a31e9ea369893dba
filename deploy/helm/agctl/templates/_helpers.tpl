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

{{- /* All else of the file system is read-only. A path with a variable is not known here. */ -}}
{{- define "agctl.checkFile" -}}
{{- if and .file (not (contains "$" .file)) -}}
{{- $file := clean .file -}}
{{- $found := false -}}
{{- range .paths }}{{ if hasPrefix (printf "%s/" .) $file }}{{ $found = true }}{{ end }}{{ end -}}
{{- if not $found -}}
{{- fail (printf "%s is %s, which is below none of the volumes that can be written: %s. Set a path below one, such as %s" .key .value (join ", " .paths | default "there are none") .example) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* A port of the gateway that is not of this pod alone is one of `ports`, and each of `ports` is one of the gateway. */ -}}
{{- define "agctl.checkPorts" -}}
{{- $config := .Values.config -}}
{{- $gateways := $config.gateways | default dict -}}
{{- $published := list -}}
{{- range .Values.ports }}{{ $published = append $published (int .targetPort) }}{{ end -}}
{{- $own := dict -}}
{{- range $name, $gateway := $gateways -}}
{{- if and $gateway (not (regexMatch "^(127[.]|::1$|localhost$)" ($gateway.address | default "" | toString))) }}{{ $_ := set $own (printf "gateways.%s" $name) $gateway.port }}{{ end -}}
{{- end -}}
{{- range $key, $usual := dict "mcp" 3000 "llm" 4000 -}}
{{- $entry := get $config $key | default dict -}}
{{- if $entry.port }}{{ $_ := set $own $key $entry.port }}
{{- else if and $entry (not $entry.gateways) (not (hasKey $gateways "default")) }}{{ $_ := set $own $key $usual }}{{ end -}}
{{- end -}}
{{- range $index, $bind := $config.binds }}{{ $_ := set $own (printf "binds[%d]" $index) $bind.port }}{{ end -}}
{{- $open := list -}}
{{- $isKnown := true -}}
{{- range $at, $port := $own -}}
{{- if regexMatch "^[0-9.e+]+$" (toString $port) }}{{ $open = append $open (int $port) }}{{ else }}{{ $isKnown = false }}{{ end -}}
{{- if and (regexMatch "^[0-9.e+]+$" (toString $port)) (not (has (int $port) $published)) -}}
{{- fail (printf "config.%s.port is %v, and no `targetPort` of ports is: add it to ports, or nobody reaches it" $at (int $port)) -}}
{{- end -}}
{{- end -}}
{{- if not (omit $config "config") }}{{ $open = list 8080 }}{{ end -}}
{{- $admin := ($config.config | default dict).adminAddr | default "" | toString -}}
{{- if not (regexMatch "^(127[.]|[[]::1[]]|localhost)" $admin) }}{{ $open = append $open (regexFind "[0-9]+$" $admin | int) }}{{ end -}}
{{- range .Values.ports -}}
{{- if and $isKnown (not (has (int .targetPort) $open)) -}}
{{- fail (printf "ports: the targetPort %v of %s is no port of config: nobody would answer there" .targetPort .name) -}}
{{- end -}}
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
{{- $numbers := list -}}
{{- range .Values.ports }}
{{- if has .name $names }}{{ fail (printf "two of `ports` have the name %s" .name) }}{{ end -}}
{{- if has (int .port) $numbers }}{{ fail (printf "two of `ports` have the port %v" .port) }}{{ end -}}
{{- $names = append $names .name }}
{{- $numbers = append $numbers (int .port) }}
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
{{- $written := list -}}
{{- if .Values.persistence.enabled }}{{ $written = append $written (trimSuffix "/" .Values.persistence.mountPath) }}{{ end -}}
{{- range .Values.extraVolumeMounts }}{{ if not .readOnly }}{{ $written = append $written (trimSuffix "/" .mountPath) }}{{ end }}{{ end -}}
{{- if .Values.persistence.enabled }}{{ include "agctl.checkPath" .Values.persistence.mountPath }}{{ $paths = append $paths (trimSuffix "/" .Values.persistence.mountPath) }}{{ end -}}
{{- range concat .Values.files .Values.extraVolumeMounts }}
{{- $path := trimSuffix "/" .mountPath -}}
{{- include "agctl.checkPath" .mountPath }}
{{- if has $path $paths }}{{ fail (printf "two volumes are mounted at %s" .mountPath) }}{{ end -}}
{{- $paths = append $paths $path }}
{{- end -}}
{{- if hasPrefix "sqlite:" $database -}}
{{- include "agctl.checkFile" (dict "key" "config.config.database.url" "value" $database "file" (regexReplaceAll "^sqlite:(//)?([^?]*).*$" $database "${2}") "example" "sqlite:///data/agctl.db" "paths" $written) -}}
{{- end -}}
{{- $audit := ($process.audit | default dict).file | default "" | toString -}}
{{- include "agctl.checkFile" (dict "key" "config.config.audit.file" "value" $audit "file" $audit "example" "/data/audit.jsonl" "paths" (concat $written (list "/tmp" "/dev"))) -}}
{{- $known := concat (list "config" "tmp") $volumes -}}
{{- if .Values.persistence.enabled }}{{ $known = append $known "data" }}{{ end -}}
{{- range .Values.extraVolumeMounts }}
{{- if not (has .name $known) }}{{ fail (printf "extraVolumeMounts: there is no volume with the name %s: add it to extraVolumes" .name) }}{{ end -}}
{{- end -}}
{{- include "agctl.checkPorts" . -}}
{{- range $key := list "ingress" "httpRoute" -}}
{{- $entry := get $.Values $key -}}
{{- if and $entry.enabled (not (has $entry.port $names)) -}}
{{- fail (printf "%s.port is %s, but ports has only: %s" $key $entry.port (join ", " $names)) -}}
{{- end -}}
{{- end -}}
{{- end }}
