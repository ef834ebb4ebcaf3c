{{- define "skein.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "skein.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "skein.labels" -}}
{{ include "skein.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "skein.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What is wrong with values that a schema cannot say. */}}
{{- define "skein.check" -}}
{{- if and (gt (int .Values.gateway.replicaCount) 0) (not .Values.nats.url) }}
{{- fail "gateway.replicaCount needs nats.url: with a nats-server inside, the one Skein serves HTTP" }}
{{- end }}
{{- if and (gt (int .Values.gateway.replicaCount) 0) (not .Values.gateway.credsSecret) }}
{{- fail "gateway.replicaCount needs gateway.credsSecret: skein access user --role gateway makes the credentials" }}
{{- end }}
{{- if and .Values.keysSecret (not .Values.nats.url) }}
{{- fail "keysSecret needs nats.url: with a nats-server inside, the folder of keys is in the volume" }}
{{- end }}
{{- if not (or .Values.tlsSecret .Values.trustProxy .Values.httpPlain) }}
{{- fail "set tlsSecret, trustProxy or httpPlain: keys must not be readable on their way" }}
{{- end }}
{{- end }}

{{/* Names by which requests may ask for a service. */}}
{{- define "skein.hosts" -}}
{{- $s := .service -}}
{{- $n := .root.Release.Namespace -}}
{{- concat (list $s (printf "%s.%s" $s $n) (printf "%s.%s.svc" $s $n) (printf "%s.%s.svc.cluster.local" $s $n)) .root.Values.hosts | join "," -}}
{{- end }}

{{/* How a pod serves HTTP. */}}
{{- define "skein.http" -}}
- {name: SKEIN_HTTP_LISTEN, value: "0.0.0.0:8420"}
- {name: SKEIN_HTTP_HOST, value: {{ include "skein.hosts" . | quote }}}
- {name: SKEIN_TRUST_PROXY, value: {{ join "," .root.Values.trustProxy | quote }}}
- {name: SKEIN_HTTP_PLAIN, value: {{ .root.Values.httpPlain | quote }}}
{{- if .root.Values.tlsSecret }}
- {name: SKEIN_TLS_CERT, value: /etc/skein/tls/tls.crt}
- {name: SKEIN_TLS_KEY, value: /etc/skein/tls/tls.key}
{{- end }}
{{- end }}

{{/* What all containers have. */}}
{{- define "skein.container" -}}
image: {{ include "skein.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with .root.Values.envFromSecrets }}
envFrom:
{{- range . }}
- secretRef: {name: {{ . }}}
{{- end }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources: {{- toYaml .root.Values.resources | nindent 2 }}
startupProbe:
  httpGet: {path: /readyz, port: ops}
  periodSeconds: 5
  failureThreshold: 720 # after a crash a large store is read: an hour
livenessProbe:
  httpGet: {path: /healthz, port: ops}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: ops}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* What all pods have. */}}
{{- define "skein.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false # a service named skein would set SKEIN_PORT and more
terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "skein.mounts" -}}
{{- if .Values.tlsSecret }}
- {name: tls, mountPath: /etc/skein/tls, readOnly: true}
{{- end }}
{{- if and .Values.nats.url .Values.nats.credsSecret }}
- {name: creds, mountPath: /etc/skein/creds, readOnly: true}
{{- end }}
{{- if and .Values.nats.url .Values.nats.caSecret }}
- {name: ca, mountPath: /etc/skein/ca, readOnly: true}
{{- end }}
{{- if .Values.keysSecret }}
- {name: keys, mountPath: /etc/skein/keys, readOnly: true}
{{- end }}
{{- end }}

{{- define "skein.volumes" -}}
{{- if .Values.tlsSecret }}
- {name: tls, secret: {secretName: {{ .Values.tlsSecret }}}}
{{- end }}
{{- if and .Values.nats.url .Values.nats.credsSecret }}
- {name: creds, secret: {secretName: {{ .Values.nats.credsSecret }}}}
{{- end }}
{{- if and .Values.nats.url .Values.nats.caSecret }}
- {name: ca, secret: {secretName: {{ .Values.nats.caSecret }}}}
{{- end }}
{{- if .Values.keysSecret }}
- {name: keys, secret: {secretName: {{ .Values.keysSecret }}}}
{{- end }}
{{- end }}
