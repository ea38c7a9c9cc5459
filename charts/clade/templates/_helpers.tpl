{{- define "clade.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimAll "-." }}
{{- end }}

{{/*
The name of a Service is a label of DNS that begins with a letter. That of a StatefulSet is in a label of its pods,
`controller-revision-hash`, with 11 characters more; that of a Deployment is in the names of Services and pods.
*/}}
{{- define "clade.fullname" -}}
{{- $name := .Values.fullnameOverride }}
{{- if not $name }}
{{- $chart := include "clade.name" . }}
{{- $name = contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) }}
{{- end }}
{{- $name = replace "." "-" $name }}
{{- if regexMatch "^[0-9]" $name }}{{ $name = printf "clade-%s" $name }}{{ end }}
{{- $name | trunc (.Values.persistence.enabled | ternary 52 55) | trimAll "-" }}
{{- end }}

{{- define "clade.selectorLabels" -}}
app.kubernetes.io/name: {{ include "clade.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: controller
{{- end }}

{{/* Of the pod of `helm test` */}}
{{- define "clade.testSelectorLabels" -}}
{{- set (include "clade.selectorLabels" . | fromYaml) "app.kubernetes.io/component" "test" | toYaml }}
{{- end }}

{{- define "clade.labels" -}}
{{- include "clade.labelsWith" (list . dict) }}
{{- end }}

{{/* The labels of an object, each once: [the root, labels of this object] */}}
{{- define "clade.labelsWith" -}}
{{- $root := index . 0 }}
{{- $labels := include "clade.selectorLabels" $root | fromYaml }}
{{- $chart := dict "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/managed-by" $root.Release.Service }}
{{- $chart = set $chart "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") }}
{{- merge dict (index . 1) $labels ($root.Values.commonLabels | default dict) $chart | toYaml }}
{{- end }}

{{- define "clade.image" -}}
{{- $path := .Values.image.repository }}
{{- with .Values.image.registry }}{{ $path = printf "%s/%s" . $path }}{{ end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $path .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $path (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "clade.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "clade.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "clade.scheme" -}}
{{- if .Values.tls.existingSecret }}https{{ else }}http{{ end }}
{{- end }}

{{/* Deployment or StatefulSet */}}
{{- define "clade.kind" -}}
{{- if .Values.persistence.enabled }}StatefulSet{{ else }}Deployment{{ end }}
{{- end }}

{{/* "true" if a value like {existingSecret, existingConfigMap} names something */}}
{{- define "clade.named" -}}
{{- if or .existingSecret .existingConfigMap }}true{{ end }}
{{- end }}

{{/* The source of a volume with one file of a Secret or ConfigMap: {from: {existingSecret, existingConfigMap}, items: [key, …]} */}}
{{- define "clade.source" -}}
{{- if .from.existingSecret -}}
secret:
  secretName: {{ .from.existingSecret | quote }}
{{- else -}}
configMap:
  name: {{ .from.existingConfigMap | quote }}
{{- end }}
  defaultMode: 0440
  items:
  {{- range .items }}
    - {key: {{ . | quote }}, path: {{ . | quote }}}
  {{- end }}
{{- end }}

{{/*
The bytes of check-ins for which the volume has room: half of it, since the mirror is there too. Empty where the daemon's own limit
is less, and for a size in another form than 1Gi.
*/}}
{{- define "clade.storeBytes" -}}
{{- $size := .Values.persistence.enabled | ternary .Values.persistence.size .Values.persistence.emptyDirSizeLimit | toString }}
{{- $units := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 }}
{{- if regexMatch "^[0-9]+(\\.[0-9]+)?(k|M|G|Ki|Mi|Gi)?$" $size }}
{{- $half := mulf (regexFind "^[0-9.]+" $size | float64) (get $units (regexFind "[A-Za-z]*$" $size)) 0.5 | floor | int64 }}
{{- if lt $half 4294967296 }}{{ $half }}{{ end }}
{{- end }}
{{- end }}

{{/*
The limit of check-ins that the container gets as a variable. Empty where they are elsewhere, and where a limit or a settings file comes
from somewhere else: a variable wins over a file.
*/}}
{{- define "clade.storeLimit" -}}
{{- $config := .Values.config | default dict }}
{{- $isChosen := or .Values.store.existingSecret .Values.existingConfigMap .Values.envFrom (hasKey $config "store") (hasKey $config "store-max-bytes") }}
{{- range .Values.extraEnv }}
{{- if has .name (list "CLADE_STORE" "CLADE_STORE_MAX_BYTES" "CLADE_CONFIG") }}{{ $isChosen = true }}{{ end }}
{{- end }}
{{- range .Values.extraArgs }}
{{- if regexMatch "^--(store|store-max-bytes|config)(=|$)" . }}{{ $isChosen = true }}{{ end }}
{{- end }}
{{- if not $isChosen }}{{ include "clade.storeBytes" . }}{{ end }}
{{- end }}

{{/* The files that are written into the chart's own ConfigMap */}}
{{- define "clade.files" -}}
{{- $files := dict }}
{{- if and .Values.config (not .Values.existingConfigMap) }}
{{- $files = set $files "clade.yaml" (toYaml .Values.config) }}
{{- end }}
{{- with .Values.repository.knownHosts }}{{ $files = set $files "known_hosts" (trim .) }}{{ end }}
{{- with .Values.repository.verify.allowedSigners }}{{ $files = set $files "allowed_signers" (trim .) }}{{ end }}
{{- with .Values.repository.verify.openpgpKeys }}{{ $files = set $files "openpgp-keys.asc" (trim .) }}{{ end }}
{{- with .Values.tls.allow }}{{ $files = set $files "allow.yaml" (toYaml .) }}{{ end }}
{{- range $name, $text := $files }}{{ $files = set $files $name (printf "%s\n" $text) }}{{ end }}
{{- with $files }}{{ toYaml . }}{{ end }}
{{- end }}

{{/*
A setting of the daemon as the chart can read it, empty where nothing sets it: [the root, its name]. A flag wins over a variable, and
that over `config`.
*/}}
{{- define "clade.setting" -}}
{{- $values := (index . 0).Values }}
{{- $name := index . 1 }}
{{- $setting := "" }}
{{- $config := $values.config | default dict }}
{{- if and (hasKey $config $name) (not $values.existingConfigMap) }}{{ $setting = get $config $name | toString }}{{ end }}
{{- $variable := printf "CLADE_%s" (upper $name | replace "-" "_") }}
{{- range $values.extraEnv }}
{{- if and (eq .name $variable) .value }}{{ $setting = .value }}{{ end }}
{{- end }}
{{- $flag := printf "--%s" $name }}
{{- $former := "" }}
{{- range $values.extraArgs }}
{{- if hasPrefix (printf "%s=" $flag) . }}{{ $setting = trimPrefix (printf "%s=" $flag) . }}{{ end }}
{{- if eq $former $flag }}{{ $setting = . }}{{ end }}
{{- $former = . }}
{{- end }}
{{- $setting }}
{{- end }}

{{/* `grace` of the daemon as a duration */}}
{{- define "clade.grace" -}}
{{- include "clade.setting" (list . "grace") | default "25s" }}
{{- end }}

{{/* "true" if the chart can read `grace`; the daemon reads more forms, such as `PT30S` */}}
{{- define "clade.readsGrace" -}}
{{- if regexMatch "^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d) ?)+$" (include "clade.grace" .) }}true{{ end }}
{{- end }}

{{/* The seconds that a pod takes to stop: the sleep, `grace`, and what the daemon ends after that */}}
{{- define "clade.stopSeconds" -}}
{{- $grace := include "clade.grace" . }}
{{- $units := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 }}
{{- $seconds := 0.0 }}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)" $grace -1 }}
{{- $seconds = addf $seconds (mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[a-z]+$" .))) }}
{{- end }}
{{- add (ceil $seconds | int64) (int64 .Values.preStopSleepSeconds) 3 }}
{{- end }}

{{- define "clade.terminationGracePeriodSeconds" -}}
{{- $given := .Values.terminationGracePeriodSeconds }}
{{- if include "clade.readsGrace" . }}
{{- $needed := include "clade.stopSeconds" . | int64 }}
{{- if kindIs "invalid" $given }}{{ $given = add $needed 2 }}{{ end }}
{{- if lt (int64 $given) $needed }}
{{- fail (printf "`terminationGracePeriodSeconds` must be more than `preStopSleepSeconds` and the %s that requests in flight may take (`config.grace`): at least %d, or null" (include "clade.grace" .) $needed) }}
{{- end }}
{{- else if kindIs "invalid" $given }}
{{- fail (printf "`grace` is `%s`: write a duration such as 25s or 1m30s, or set `terminationGracePeriodSeconds`" (include "clade.grace" .)) }}
{{- end }}
{{- int64 $given }}
{{- end }}

{{/* How a Deployment is updated */}}
{{- define "clade.strategy" -}}
{{- $type := "RollingUpdate" }}
{{- range .Values.extraVolumes }}
{{- with .persistentVolumeClaim }}
{{- /* One node at a time may have such a claim: a new pod would wait for the old one, and that for the new one. */}}
{{- if not .readOnly }}{{ $type = "Recreate" }}{{ end }}
{{- end }}
{{- end }}
{{- $strategy := .Values.strategy | default (dict "type" $type) | deepCopy }}
{{- $strategy = merge $strategy (dict "type" "RollingUpdate") }}
{{- if ne $strategy.type "Recreate" }}
{{- $rolling := $strategy.rollingUpdate | default dict }}
{{- if not (hasKey $rolling "maxSurge") }}{{ $rolling = set $rolling "maxSurge" 1 }}{{ end }}
{{- if not (hasKey $rolling "maxUnavailable") }}
{{- /* Both may not be 0. */}}
{{- $rolling = set $rolling "maxUnavailable" (has (toString $rolling.maxSurge) (list "0" "0%") | ternary 1 0) }}
{{- end }}
{{- $strategy = set $strategy "rollingUpdate" $rolling }}
{{- end }}
{{- toYaml $strategy }}
{{- end }}

{{/* "true" unless `extraVolumeMounts` has another /tmp */}}
{{- define "clade.ownTmp" -}}
{{- $own := "true" }}
{{- range .Values.extraVolumeMounts }}
{{- if eq (.mountPath | default "" | trimSuffix "/") "/tmp" }}{{ $own = "" }}{{ end }}
{{- end }}
{{- $own }}
{{- end }}

{{/* What must be said, and what does not go together */}}
{{- define "clade.check" -}}
{{- if not .Values.repository.url }}
{{- fail "`repository.url` is missing: the git repository of the node groups" }}
{{- end }}
{{- $certificates := include "clade.named" .Values.tls.clientCA }}
{{- if not (or $certificates .Values.access.tokens.existingSecret .Values.access.allowAnonymous) }}
{{- fail "every request would be refused: set `tls.clientCA`, `access.tokens.existingSecret`, or `access.allowAnonymous: true` to let every client in the cluster classify and read" }}
{{- end }}
{{- if and $certificates (not .Values.tls.existingSecret) }}
{{- fail "`tls.clientCA` needs `tls.existingSecret`: clients send certificates over TLS only" }}
{{- end }}
{{- if and .Values.tls.allow (not $certificates) }}
{{- fail "`tls.allow` needs `tls.clientCA`: the authority of these certificates" }}
{{- end }}
{{- $credentials := .Values.repository.credentials }}
{{- if and (ne $credentials.type "none") (not $credentials.existingSecret) }}
{{- fail (printf "`repository.credentials.existingSecret` is missing: the Secret for `type: %s`" $credentials.type) }}
{{- end }}
{{- if and (eq $credentials.type "basic") (not $credentials.username) }}
{{- fail "`repository.credentials.username` is missing: the user of `type: basic`" }}
{{- end }}
{{- if and (eq $credentials.type "ssh") (not .Values.repository.knownHosts) }}
{{- fail "`repository.knownHosts` is missing: without host keys the remote cannot be authenticated; `ssh-keyscan HOST` prints them" }}
{{- end }}
{{- if and (ne .Values.repository.verify.mode "off") (not (or .Values.repository.verify.allowedSigners .Values.repository.verify.openpgpKeys)) }}
{{- fail "`repository.verify.mode` needs `allowedSigners` or `openpgpKeys`: the keys that may sign" }}
{{- end }}
{{- if and .Values.forge.existingSecret (not (or (.Values.config | default dict).forge .Values.existingConfigMap)) }}
{{- fail "`config.forge` is missing: which forge the token of `forge.existingSecret` is for" }}
{{- end }}
{{- if and (has (include "clade.setting" (list . "writes")) (list "commit" "propose")) (or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1)) }}
{{- fail "`writes` needs `replicaCount: 1` and no autoscaling: a client that writes must read it back from the same replica" }}
{{- end }}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) }}
{{- fail "`gateway.parentRefs` is missing: the Gateway of the route" }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int64 .Values.autoscaling.minReplicas) (int64 .Values.autoscaling.maxReplicas)) }}
{{- fail "`autoscaling.minReplicas` is more than `autoscaling.maxReplicas`" }}
{{- end }}
{{- include "clade.checkNames" . }}
{{- include "clade.checkExtras" . }}
{{- include "clade.checkSecrets" . }}
{{- end }}

{{/* What would replace the labels and volumes that the chart needs */}}
{{- define "clade.checkNames" -}}
{{- $selector := include "clade.selectorLabels" . | fromYaml }}
{{- range $value, $labels := dict "commonLabels" .Values.commonLabels "podLabels" .Values.podLabels "service.labels" .Values.service.labels }}
{{- range $key, $_ := $labels }}
{{- if hasKey $selector $key }}
{{- fail (printf "`%s` has `%s`, by which Services find the pods: set `nameOverride`, or leave it out" $value $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- $volumes := list "data" }}
{{- if include "clade.ownTmp" . }}{{ $volumes = append $volumes "tmp" }}{{ end }}
{{- range include "clade.volumes" . | fromYamlArray }}{{ $volumes = append $volumes .name }}{{ end }}
{{- range .Values.extraVolumes }}
{{- if has .name $volumes }}
{{- fail (printf "`extraVolumes` has the name `%s`, which is that of a volume of the chart: choose another" .name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Arguments that the daemon would refuse, and mounts that Kubernetes would */}}
{{- define "clade.checkExtras" -}}
{{- $flags := list }}
{{- range include "clade.ownArgs" . | fromYamlArray }}{{ $flags = append $flags (regexFind "^--[^=]+" .) }}{{ end }}
{{- range .Values.extraArgs }}
{{- $flag := regexFind "^--[^=]+" . }}
{{- if and $flag (has $flag $flags) }}
{{- fail (printf "`extraArgs` has `%s`, which the chart sets itself and the daemon takes once: use the value of the chart, or leave it out" $flag) }}
{{- end }}
{{- end }}
{{- $paths := list "/var/lib/clade" }}
{{- range include "clade.volumes" . | fromYamlArray }}{{ $paths = append $paths (printf "/etc/clade/%s" .name) }}{{ end }}
{{- range .Values.extraVolumeMounts }}
{{- if has (.mountPath | default "" | clean) $paths }}
{{- fail (printf "`extraVolumeMounts` has `%s`, where the chart mounts a volume of its own: choose another path" .mountPath) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Secrets that would stand in a ConfigMap or in the arguments of the pod */}}
{{- define "clade.checkSecrets" -}}
{{- if regexMatch "^https?://[^/]*@|://[^/@]*:[^/]*@" .Values.repository.url }}
{{- fail "`repository.url` has credentials, which would stand in the pod: put them into a Secret, and name it in `repository.credentials`" }}
{{- end }}
{{- if regexMatch "postgres(ql)?://[^\\s:/@]*:\\S*@|://[^/?#\\s]*:[^/?#\\s]*@|[?&](ssl)?password=" (toYaml .Values.config) }}
{{- fail "`config` has a URL with a password, which would stand in a ConfigMap: put the URL into a Secret, and name it in `store.existingSecret` or, as the variable of another setting, in `extraEnv`" }}
{{- end }}
{{- if and .Values.store.existingSecret (hasKey (.Values.config | default dict) "store") }}
{{- fail "`config.store` and `store.existingSecret` are the same setting: leave one out" }}
{{- end }}
{{- end }}

{{/* An address to listen on at a port: [the root, the port] */}}
{{- define "clade.bind" -}}
{{- $address := (index . 0).Values.bindAddress }}
{{- if and (contains ":" $address) (not (hasPrefix "[" $address)) }}{{ $address = printf "[%s]" $address }}{{ end }}
{{- printf "%s:%d" $address (index . 1) }}
{{- end }}

{{/* The arguments of the daemon */}}
{{- define "clade.args" -}}
{{- include "clade.ownArgs" . }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* Those of the chart */}}
{{- define "clade.ownArgs" -}}
{{- $credentials := .Values.repository.credentials -}}
- serve
- {{ printf "--repo=%s" .Values.repository.url | quote }}
{{- with .Values.repository.branch }}
- {{ printf "--branch=%s" . | quote }}
{{- end }}
- {{ printf "--path=%s" .Values.repository.path | quote }}
- {{ printf "--interval=%s" .Values.repository.interval | quote }}
- --data-dir=/var/lib/clade
- {{ printf "--listen=%s" (include "clade.bind" (list . 4433)) | quote }}
- {{ printf "--admin-listen=%s" (include "clade.bind" (list . 4434)) | quote }}
{{- if or .Values.config .Values.existingConfigMap }}
- --config={{ if .Values.existingConfigMap }}/etc/clade/settings{{ else }}/etc/clade/config{{ end }}/clade.yaml
{{- end }}
{{- if eq $credentials.type "token" }}
- {{ printf "--git-token-file=/etc/clade/git/%s" $credentials.tokenKey | quote }}
{{- else if eq $credentials.type "basic" }}
- {{ printf "--git-username=%s" $credentials.username | quote }}
- {{ printf "--git-password-file=/etc/clade/git/%s" $credentials.passwordKey | quote }}
{{- else if eq $credentials.type "ssh" }}
- {{ printf "--ssh-key-file=/etc/clade/git/%s" $credentials.sshKey | quote }}
- --ssh-known-hosts-file=/etc/clade/config/known_hosts
{{- end }}
{{- if include "clade.named" .Values.repository.ca }}
- {{ printf "--git-ca-file=/etc/clade/git-ca/%s" .Values.repository.ca.key | quote }}
{{- end }}
{{- if ne .Values.repository.verify.mode "off" }}
- --verify={{ .Values.repository.verify.mode }}
{{- if .Values.repository.verify.allowedSigners }}
- --allowed-signers-file=/etc/clade/config/allowed_signers
{{- end }}
{{- if .Values.repository.verify.openpgpKeys }}
- --openpgp-keys-file=/etc/clade/config/openpgp-keys.asc
{{- end }}
{{- end }}
{{- if .Values.tls.existingSecret }}
- --tls-cert=/etc/clade/tls/tls.crt
- --tls-key=/etc/clade/tls/tls.key
{{- end }}
{{- if include "clade.named" .Values.tls.clientCA }}
- {{ printf "--tls-client-ca=/etc/clade/client-ca/%s" .Values.tls.clientCA.key | quote }}
{{- with .Values.tls.clientCA.crlKey }}
- {{ printf "--tls-client-crl=/etc/clade/client-ca/%s" . | quote }}
{{- end }}
{{- end }}
{{- if .Values.tls.allow }}
- --tls-allow=/etc/clade/config/allow.yaml
{{- end }}
{{- if .Values.access.tokens.existingSecret }}
- {{ printf "--tokens-file=/etc/clade/tokens/%s" .Values.access.tokens.key | quote }}
{{- end }}
{{- if .Values.access.allowAnonymous }}
- --allow-anonymous
{{- end }}
{{- if .Values.webhook.existingSecret }}
- {{ printf "--webhook-secret-file=/etc/clade/webhook/%s" .Values.webhook.key | quote }}
{{- end }}
{{- if .Values.forge.existingSecret }}
- {{ printf "--forge-token-file=/etc/clade/forge/%s" .Values.forge.key | quote }}
{{- end }}
{{- end }}

{{/* Volumes of files: what each argument above points to */}}
{{- define "clade.volumes" -}}
{{- $credentials := .Values.repository.credentials }}
{{- if include "clade.files" . }}
- name: config
  configMap:
    name: {{ include "clade.fullname" . | quote }}
    defaultMode: 0440
{{- end }}
{{- with .Values.existingConfigMap }}
- name: settings
  configMap:
    name: {{ . | quote }}
    defaultMode: 0440
{{- end }}
{{- if ne $credentials.type "none" }}
- name: git
  {{- $key := get (dict "token" $credentials.tokenKey "basic" $credentials.passwordKey "ssh" $credentials.sshKey) $credentials.type }}
  {{- include "clade.source" (dict "from" $credentials "items" (list $key)) | nindent 2 }}
{{- end }}
{{- if include "clade.named" .Values.repository.ca }}
- name: git-ca
  {{- include "clade.source" (dict "from" .Values.repository.ca "items" (list .Values.repository.ca.key)) | nindent 2 }}
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: tls
  {{- include "clade.source" (dict "from" .Values.tls "items" (list "tls.crt" "tls.key")) | nindent 2 }}
{{- end }}
{{- if include "clade.named" .Values.tls.clientCA }}
- name: client-ca
  {{- include "clade.source" (dict "from" .Values.tls.clientCA "items" (compact (list .Values.tls.clientCA.key .Values.tls.clientCA.crlKey))) | nindent 2 }}
{{- end }}
{{- if .Values.access.tokens.existingSecret }}
- name: tokens
  {{- include "clade.source" (dict "from" .Values.access.tokens "items" (list .Values.access.tokens.key)) | nindent 2 }}
{{- end }}
{{- if .Values.webhook.existingSecret }}
- name: webhook
  {{- include "clade.source" (dict "from" .Values.webhook "items" (list .Values.webhook.key)) | nindent 2 }}
{{- end }}
{{- if .Values.forge.existingSecret }}
- name: forge
  {{- include "clade.source" (dict "from" .Values.forge "items" (list .Values.forge.key)) | nindent 2 }}
{{- end }}
{{- end }}
