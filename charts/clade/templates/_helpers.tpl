{{- define "clade.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "clade.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 55 | trimSuffix "-" }}
{{- else if contains (include "clade.name" .) .Release.Name }}
{{- .Release.Name | trunc 55 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "clade.name" .) | trunc 55 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "clade.selectorLabels" -}}
app.kubernetes.io/name: {{ include "clade.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end }}

{{- define "clade.labels" -}}
{{ include "clade.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
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
  secretName: {{ .from.existingSecret }}
{{- else -}}
configMap:
  name: {{ .from.existingConfigMap }}
{{- end }}
  defaultMode: 0440
  items:
  {{- range .items }}
    - {key: {{ . | quote }}, path: {{ . | quote }}}
  {{- end }}
{{- end }}

{{/* The files that are written into the chart's own ConfigMap */}}
{{- define "clade.files" -}}
{{- if and .Values.config (not .Values.existingConfigMap) }}
clade.yaml: |
  {{- toYaml .Values.config | nindent 2 }}
{{- end }}
{{- with .Values.repository.knownHosts }}
known_hosts: |
  {{- . | trim | nindent 2 }}
{{- end }}
{{- with .Values.repository.verify.allowedSigners }}
allowed_signers: |
  {{- . | trim | nindent 2 }}
{{- end }}
{{- with .Values.repository.verify.openpgpKeys }}
openpgp-keys.asc: |
  {{- . | trim | nindent 2 }}
{{- end }}
{{- with .Values.tls.allow }}
allow.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
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
{{- if and .Values.forge.existingSecret (not (or .Values.config.forge .Values.existingConfigMap)) }}
{{- fail "`config.forge` is missing: which forge the token of `forge.existingSecret` is for" }}
{{- end }}
{{- if and (has (default "off" .Values.config.writes) (list "commit" "propose")) (or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1)) }}
{{- fail "`config.writes` needs `replicaCount: 1` and no autoscaling: a client that writes must read it back from the same replica" }}
{{- end }}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) }}
{{- fail "`gateway.parentRefs` is missing: the Gateway of the route" }}
{{- end }}
{{- if le (int .Values.terminationGracePeriodSeconds) (add 25 .Values.preStopSleepSeconds | int) }}
{{- if not (hasKey .Values.config "grace") }}
{{- fail "`terminationGracePeriodSeconds` must be more than `preStopSleepSeconds` and the 25 seconds that requests in flight may take (`config.grace`)" }}
{{- end }}
{{- end }}
{{- end }}

{{/* The arguments of the daemon */}}
{{- define "clade.args" -}}
{{- $credentials := .Values.repository.credentials -}}
- serve
- {{ printf "--repo=%s" .Values.repository.url | quote }}
{{- with .Values.repository.branch }}
- {{ printf "--branch=%s" . | quote }}
{{- end }}
- {{ printf "--path=%s" .Values.repository.path | quote }}
- {{ printf "--interval=%s" .Values.repository.interval | quote }}
- --data-dir=/var/lib/clade
- --listen={{ .Values.bindAddress }}:4433
- --admin-listen={{ .Values.bindAddress }}:4434
{{- if or .Values.config .Values.existingConfigMap }}
- --config={{ if .Values.existingConfigMap }}/etc/clade/settings{{ else }}/etc/clade/config{{ end }}/clade.yaml
{{- end }}
{{- if eq $credentials.type "token" }}
- --git-token-file=/etc/clade/git/{{ $credentials.tokenKey }}
{{- else if eq $credentials.type "basic" }}
- {{ printf "--git-username=%s" $credentials.username | quote }}
- --git-password-file=/etc/clade/git/{{ $credentials.passwordKey }}
{{- else if eq $credentials.type "ssh" }}
- --ssh-key-file=/etc/clade/git/{{ $credentials.sshKey }}
- --ssh-known-hosts-file=/etc/clade/config/known_hosts
{{- end }}
{{- if include "clade.named" .Values.repository.ca }}
- --git-ca-file=/etc/clade/git-ca/{{ .Values.repository.ca.key }}
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
- --tls-client-ca=/etc/clade/client-ca/{{ .Values.tls.clientCA.key }}
{{- with .Values.tls.clientCA.crlKey }}
- --tls-client-crl=/etc/clade/client-ca/{{ . }}
{{- end }}
{{- end }}
{{- if .Values.tls.allow }}
- --tls-allow=/etc/clade/config/allow.yaml
{{- end }}
{{- if .Values.access.tokens.existingSecret }}
- --tokens-file=/etc/clade/tokens/{{ .Values.access.tokens.key }}
{{- end }}
{{- if .Values.access.allowAnonymous }}
- --allow-anonymous
{{- end }}
{{- if .Values.webhook.existingSecret }}
- --webhook-secret-file=/etc/clade/webhook/{{ .Values.webhook.key }}
{{- end }}
{{- if .Values.forge.existingSecret }}
- --forge-token-file=/etc/clade/forge/{{ .Values.forge.key }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* Volumes of files: what each argument above points to */}}
{{- define "clade.volumes" -}}
{{- $credentials := .Values.repository.credentials }}
{{- if include "clade.files" . }}
- name: config
  configMap:
    name: {{ include "clade.fullname" . }}
    defaultMode: 0440
{{- end }}
{{- with .Values.existingConfigMap }}
- name: settings
  configMap:
    name: {{ . }}
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
