// bridge-draft.ts: the bridge that `learn` proposes for the broker that it listened to, as YAML. It names
// where the password is (file or environment), never the password.

import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { stringify } from 'yaml'
import { readUrl } from '../../std/given-url/given-url.ts'
import type { Secret } from '../../std/secret.ts'
import { mqttBridgeSchema } from '../../ingest/config.ts'
import { brokerAbilities } from '../../ingest/ingest.ts'

export type LearnedBroker = {
  url: string
  username: string | undefined
  password: Secret | undefined
  passwordFile: string | undefined
  ca: string | undefined
  caFile: string | undefined
}

type Draft = Readonly<Record<string, unknown>>

/** Other names that URLs of MQTT use. */
const schemes: Readonly<Record<string, string>> = { 'tcp:': 'mqtt:', 'ssl:': 'mqtts:' }
/** A signal ends the listening, and not this. `connect_timeout` bounds it. */
const never = new AbortController().signal
const ingestHead = 'ingest:\n  # No device connects to the gateway itself.\n  broker: { listeners: [] }\n'
/** Where there is no bridge. */
export const ownListener = 'ingest: { broker: { access: { anonymous: true } } }\n'
const passwordVariable = 'BROKER_PASSWORD'

/** The name of the bridge, from the host. */
export function bridgeName({ url }: Pick<LearnedBroker, 'url'>): string {
  const name = new URL(url).hostname.replaceAll(/[^A-Za-z0-9_]+/g, '-').replaceAll(/^-+|-+$/g, '')
  return name === '' || name === 'broker' ? 'other-broker' : name.slice(0, 64)
}

/** The section `ingest`. Asks the broker which version of MQTT and which QoS it has. */
export async function bridgeYaml(broker: LearnedBroker, topics: readonly string[]): Promise<string> {
  const { username, password, secure } = loginOf(broker)
  const draft: Draft = {
    name: bridgeName(broker),
    url: addressOf(broker.url),
    topics,
    client_id: `telemetry-gateway-${randomBytes(4).toString('hex')}`,
    ...(username !== undefined && { username }),
  }
  const asked = mqttBridgeSchema.safeParse({
    ...draft,
    ...(password !== undefined && username !== undefined && { password }),
    ...(secure && broker.ca !== undefined && { tls: { ca: broker.ca } }),
  })
  // `learn` itself listens by MQTT 3.1.1.
  const found = (asked.success ? await brokerAbilities(asked.data, never) : null) ?? {
    protocol: '3.1.1',
    qos: 1,
  }
  const written: Draft = {
    ...draft,
    ...(password !== undefined && username !== undefined && { password: placeOf(broker) }),
    ...(secure && broker.caFile !== undefined && { tls: { ca: `\${file:${resolve(broker.caFile)}}` } }),
    protocol: found.protocol,
    qos: found.qos,
    session: 'keep',
    ...(found.protocol === 5 && { session_expiry: '7d' }),
  }
  const comments = [
    'The broker keeps messages for this client_id while the gateway is away. Do not change it; each gateway',
    'needs its own.',
    ...(found.qos === 0
      ? ['The broker grants QoS 0 only: what it sends while the gateway is away is lost.']
      : []),
    ...(written['password'] === `\${env:${passwordVariable}}`
      ? [`Set ${passwordVariable} in the environment of the gateway.`]
      : []),
  ]
  const lines = stringify(written, { lineWidth: 100 }).trimEnd().split('\n')
  const item = lines.map((line, index) => `    ${index === 0 ? '-' : ' '} ${line}\n`)
  return `${ingestHead}  bridges:\n${comments.map((line) => `    # ${line}\n`).join('')}${item.join('')}`
}

/** User and password may be in the URL. */
function loginOf({ url, username, password }: LearnedBroker) {
  const given = readUrl(url, [new URL(url).protocol])
  const login = typeof given === 'string' ? { user: '', password: '' } : given
  return {
    username: username ?? (login.user || undefined),
    password: password?.reveal() ?? (login.password || undefined),
    secure: ['mqtts:', 'ssl:', 'wss:'].includes(new URL(url).protocol),
  }
}

function placeOf({ passwordFile }: LearnedBroker): string {
  return passwordFile === undefined ? `\${env:${passwordVariable}}` : `\${file:${resolve(passwordFile)}}`
}

/** As the config has it: without user, password and query. */
function addressOf(text: string): string {
  const { protocol, hostname, port, pathname } = new URL(text)
  const path = protocol.startsWith('ws') && pathname !== '/' ? pathname : ''
  return `${schemes[protocol] ?? protocol}//${hostname}${port === '' ? '' : `:${port}`}${path}`
}

/** A whole config: with the sandbox as the service, until a person fills in the real one. */
export function wholeConfig({ yaml, devices }: { yaml: string; devices: string }): string {
  return [
    '# Proposed by `telemetry-gateway learn`.',
    '#',
    '#   telemetry-gateway check --config gateway.yaml --connect',
    '#   telemetry-gateway run --config gateway.yaml',
    '',
    yaml.trimEnd(),
    '',
    ...(devices === '' ? [] : ['devices: { file: devices.csv, unknown: accept }', '']),
    'spool: { path: ./spool }',
    '',
    'delivery:',
    '  # The sandbox (`telemetry-gateway sandbox`). Write the URL of the ingestion API here.',
    '  base_url: http://127.0.0.1:8081',
    '  credentials: { source: environment }',
    '',
  ].join('\n')
}
