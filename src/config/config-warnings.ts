// config-warnings.ts: what a valid config allows and a person should know: `check` shows it, and the start
// writes it to the log.

import { alertWarnings, type AlertsConfig } from '../alerts/config.ts'
import { anyBridgeWarnings, type IngestConfig } from '../ingest/config.ts'
import type { SourceConfig } from '../mapping/config.ts'
import { messageSourceWarnings } from '../mapping/mapping.ts'
import type { OpsConfig } from '../ops/config.ts'
import { isLoopback } from '../std/loopback.ts'

export type ConfigWarning = { what: string; act: string }

type Sections = {
  ingest: IngestConfig
  ops: OpsConfig
  alerts: AlertsConfig
  sources: readonly SourceConfig[]
}

export function configWarnings({ ingest, ops, alerts, sources }: Sections): ConfigWarning[] {
  const { listeners, access } = ingest.broker
  const warnings: ConfigWarning[] = []
  for (const { url, access: own } of listeners) {
    const { users, tokens, password_file, anonymous } = own ?? access
    if (isLoopback(url.host)) continue
    const address = `${url.host}:${url.port}`
    const hasSecrets = users.length > 0 || tokens.length > 0 || password_file !== undefined
    if (!url.secure && hasSecrets)
      warnings.push({
        what: `Devices send passwords or tokens to the listener ${address} without encryption.`,
        act: `Use ${url.path === null ? 'mqtts' : 'wss'}:// with \`tls\`, or keep the network of this listener apart from others.`,
      })
    if (anonymous)
      warnings.push({
        what: `Everybody who reaches the listener ${address} may publish for every device.`,
        act: 'Configure users, tokens or certificates in `access`.',
      })
  }
  for (const bridge of ingest.bridges) warnings.push(...anyBridgeWarnings(bridge, isLoopback))
  warnings.push(...messageSourceWarnings(sources, ingest.bridges, listeners.length > 0))
  warnings.push(...alertWarnings(alerts))
  if (!isLoopback(ops.listen.host) && (ops.users.length === 0 || ops.anonymous_read === true))
    warnings.push({
      what: `Everybody who reaches ${ops.listen.host}:${ops.listen.port} (ops.listen) can read status and devices.`,
      act: 'Configure `ops.users`, or listen on 127.0.0.1.',
    })
  return warnings
}
