// new-config.ts: the first config of a gateway with comments, from what a person has said. It is also the
// config that a package installs, from the answers of a person who has said nothing.

import { packagedPreset } from '../../config/config.ts'
import { deviceRules } from '../../mapping/mapping.ts'
import { isLoopback } from '../../std/loopback.ts'

export type NewDevice = { key: string; asset: string }

export type Setup = {
  /** Base URL of the ingestion API; null while it is not known. */
  service: string | null
  providerKey: string | null
  /** URL of the listener. */
  listen: string
  tls: { cert: string; key: string } | null
  /** Name of a preset; null for the JSON of the example. */
  preset: string | null
  model: string | null
  /** Null: payloads of devices without their own have none. */
  carrier: string | null
  operator: string | null
  assetType: string | null
  unknown: 'accept' | 'quarantine' | 'ignore'
  devices: readonly NewDevice[]
  spoolPath: string
  spoolBytes: string
}

/** Nobody else reaches the listener, and nobody has a password yet. */
export const untouched: Setup = {
  service: null,
  providerKey: null,
  listen: 'mqtt://127.0.0.1:1883',
  tls: null,
  preset: null,
  model: null,
  carrier: null,
  operator: null,
  assetType: null,
  unknown: 'quarantine',
  devices: [],
  spoolPath: '/var/lib/telemetry-gateway/spool',
  spoolBytes: '20GiB',
}

/** In no use: a request to it fails in the DNS. The unit does not start at boot where the config has it. */
export const noService = 'https://ingestion.invalid'

export function configText(setup: Setup): string {
  const { service, providerKey, listen, tls, unknown } = setup
  return `# Config of the telemetry gateway.
#
#   telemetry-gateway check --config FILE             reports all problems, with line and column
#   telemetry-gateway check --config FILE --connect   also checks service, clock, credentials and disk
#   telemetry-gateway doctor --config FILE            also checks machine and daemon
#
# All options with their defaults are in reference.md, beside the documentation of the package. Durations are
# written 30s, 5m, 1h; sizes 64MiB, 20GiB. Secrets come from "\${env:NAME}" or "\${file:PATH}", never from this
# file. Relative paths start at the folder of this file.

ingest:
  broker:
    # For MQTT 3.1, 3.1.1 and 5. 127.0.0.1 is for this machine alone, 0.0.0.0 for every machine that reaches this one.
    listeners:
      - url: ${scalar(listen)}
${tls === null ? plainListener(listen) : `        tls: { cert: ${scalar(tls.cert)}, key: ${scalar(tls.key)} }\n`}\
    # User names and hashes of passwords. Change them with
    # \`telemetry-gateway passwd /etc/telemetry-gateway/users NAME\`; a running daemon reads the file again.
    access: { password_file: users }
  bridges: []

# Which messages are read, and how. The first source whose topic matches takes the message.
sources:
${sourceText(setup)}
# The asset of each device. For devices that are not in the table: accept, quarantine or ignore.
# \`telemetry-gateway devices add\` writes a row; the messages in quarantine follow as soon as it is there.
devices: { file: devices.csv, unknown: ${unknown} }

# Values for devices without their own in the table: carrier, operator, asset_type. Others have none.
defaults: ${defaultsText(setup)}

# Acknowledged data is stored here until it is delivered. Use a local disk, with 500 bytes per message for an
# outage of days. When it is full, the gateway sends no acknowledgements and devices keep their messages.
# With \`create: false\` it waits where no spool is, as where the disk is not mounted. \`spool init\` makes one.
spool: { path: ${scalar(setup.spoolPath)}, create: false, max_bytes: ${setup.spoolBytes}, min_free_bytes: 1GiB }

delivery:
  # The ingestion API, without /v2/telemetry.
${service === null ? '  # REPLACE THIS: no service is there.\n' : ''}\
  base_url: ${scalar(service ?? noService)}
${providerKey === null ? '' : `  # X-Provider-Key of each request.\n  provider_key: ${scalar(providerKey)}\n`}\
  # {"accessKeyId": "...", "secretAccessKey": "..."}. New keys are in force within seconds.
  credentials: { source: file, path: ingestion.json }

# /status, /healthz, /readyz and /metrics. They need no password, so keep the address local.
ops: { listen: 127.0.0.1:8080 }

log: { level: info }
`
}

/** A password crosses the network in plain text. */
function plainListener(listen: string): string {
  if (isLoopback(new URL(listen).hostname.replace(/^\[|\]$/g, ''))) return ''
  const secure = listen.startsWith('ws:') ? 'wss://HOST:8084/mqtt' : 'mqtts://HOST:8883'
  return `        # Passwords are readable on this network. With a certificate use ${secure} and \`tls\`.\n`
}

function sourceText({ preset, model }: Setup): string {
  if (preset !== null)
    return `  # \`telemetry-gateway map --preset ${preset} FILE\` shows what becomes of a message.
${presetRules(preset)
  .map((rule) => `  # ${rule}\n`)
  .join('')}\
  - name: devices
    preset: ${scalar(preset)}
${model === null ? '' : `    model: ${scalar(model)}\n`}`
  return `  - name: vehicles
    # Each device publishes to this topic, with its own name in the place of {device}: telemetry/v1/truck-7.
    # This name must be its user name.
    topic: telemetry/v1/{device}
    identity: device
    map:
      # A value that is missing in a message is omitted in its payload.
      time: { path: ts, format: ms }
      latitude: { path: gps.lat }
      longitude: { path: gps.lon }
      speed: { path: gps.speed, unit: km/h }
      heading: { path: gps.heading }
      in_motion: { path: gps.moving }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, path: odometer.value, unit: km }
        - { type: OBD_TOTAL_ENGINE_TIME, path: engineHours.value, unit: h, part: ENGINE }
`
}

/** What the devices of a preset must do. */
function presetRules(preset: string): string[] {
  const { topic, device, identity } = packagedPreset(preset)
  const isTopic = typeof topic === 'string' || Array.isArray(topic)
  return isTopic ? deviceRules({ topic, device, identity }) : []
}

function defaultsText({ carrier, operator, assetType }: Setup): string {
  const fields = Object.entries({ carrier, operator, asset_type: assetType }).flatMap(([name, value]) =>
    value === null ? [] : [`${name}: ${scalar(value)}`],
  )
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

/** Without quotes where YAML needs none: a word, a path or a URL. */
function scalar(text: string): string {
  const isWord = /^[A-Za-z/][\w./-]*$/.test(text) || /^(mqtts?|wss?|https?):\/\/[\w.:/-]+$/.test(text)
  const isOther = /^(true|false|null|yes|no|on|off|y|n)$/i.test(text)
  return isWord && !isOther ? text : JSON.stringify(text)
}

/** The device table and the password file before the first device. */
export const newTable = 'device,asset_id,asset_type,operator,carrier,provider,manufacturer,model\n'
export const newUsers = '# USER:HASH, one line each. `telemetry-gateway passwd FILE USER` writes them.\n'
