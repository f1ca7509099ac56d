{{- define "bloomery.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "bloomery.selector" -}}
app.kubernetes.io/name: bloomery
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bloomery.labels" -}}
{{ include "bloomery.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* Whether the server binds low ports and raw sockets. */ -}}
{{- define "bloomery.privileged" -}}
{{- if .Values.hostNetwork }}true{{ end }}
{{- end }}

{{- define "bloomery.users" -}}
{{- .Values.auth.existingSecret | default (printf "%s-htpasswd" (include "bloomery.name" .)) }}
{{- end }}

{{- define "bloomery.hasUsers" -}}
{{- if or .Values.auth.existingSecret .Values.auth.htpasswd }}true{{ end }}
{{- end }}

{{- /* What the chart sets in ironic.conf, as YAML. */ -}}
{{- define "bloomery.defaults" -}}
DEFAULT:
  use_json: true
  {{- if include "bloomery.hasUsers" . }}
  auth_strategy: http_basic
  http_basic_auth_user_file: /etc/ironic/auth/htpasswd
  {{- end }}
api:
  port: 6385
  {{- if .Values.tls.secretName }}
  enable_ssl_api: true
  cert_file: /etc/ironic/tls/tls.crt
  key_file: /etc/ironic/tls/tls.key
  {{- end }}
boot:
  http_port: 8080
  tftp: {{ .Values.hostNetwork }}
  {{- with .Values.dhcp.interface }}
  interface: {{ . }}
  {{- end }}
  {{- with .Values.dhcp.range }}
  dhcp_range: {{ . }}
  {{- end }}
  {{- with .Values.dhcp.gateway }}
  dhcp_gateway: {{ . }}
  {{- end }}
dhcp:
  dhcp_provider: {{ if .Values.dhcp.range }}builtin{{ else }}none{{ end }}
healthcheck:
  enabled: true
  backends: [database, event_loop]
json_rpc:
  port: 8089
metrics:
  prometheus_port: 9639
  public: false
{{- if .Values.screens.enabled }}
vnc:
  enabled: true
  port: 6090
  public_url: {{ required "where do browsers reach the screens? Set screens.publicUrl" .Values.screens.publicUrl | trimSuffix "/" }}/vnc_auto.html
  {{- if .Values.tls.secretName }}
  enable_ssl: true
  cert_file: /etc/ironic/tls/tls.crt
  key_file: /etc/ironic/tls/tls.key
  {{- end }}
{{- end }}
{{- end }}

{{- /* ironic.conf */ -}}
{{- define "bloomery.config" -}}
{{- $config := mergeOverwrite (include "bloomery.defaults" . | fromYaml) (deepCopy .Values.config) }}
{{- range $section, $options := $config }}
[{{ $section }}]
{{- range $name, $value := $options }}
{{ $name }} = {{ if kindIs "slice" $value }}{{ join "," $value }}{{ else if kindIs "float64" $value }}{{ if eq $value (floor $value) }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{ end }}
{{- end }}

{{- /* Values that the server would not start with, or would start open with. */ -}}
{{- define "bloomery.check" -}}
{{- $default := .Values.config.DEFAULT | default dict }}
{{- if and (not (include "bloomery.hasUsers" .)) (not (hasKey $default "auth_strategy")) }}
{{- fail "who may call the API? Set auth.existingSecret or auth.htpasswd, or config.DEFAULT.auth_strategy (noauth: everybody)" }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (not .Values.database.existingSecret) }}
{{- fail "several replicas need one PostgreSQL server: set database.existingSecret" }}
{{- end }}
{{- if and .Values.dhcp.range (not .Values.hostNetwork) }}
{{- fail "DHCP needs the network of the host: set hostNetwork" }}
{{- end }}
{{- if and .Values.dhcp.range (not .Values.dhcp.interface) }}
{{- fail "DHCP needs dhcp.interface" }}
{{- end }}
{{- if and .Values.dhcp.range (gt (int .Values.replicas) 1) }}
{{- fail "one DHCP server for a network: set replicas to 1, or leave dhcp.range out" }}
{{- end }}
{{- if hasKey (.Values.config.database | default dict) "connection" }}
{{- fail "config.database.connection would put a password into a ConfigMap: use database.existingSecret" }}
{{- end }}
{{- end }}
