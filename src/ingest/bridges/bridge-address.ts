// bridge-address.ts: the address of a broker and topic filters, as the config has them.

import type { z } from 'zod'
import type { NetworkPlace } from '../../std/network-faults/network-faults.ts'
import type { Secret } from '../../std/secret.ts'

export type BridgeUrl = {
  scheme: 'mqtt' | 'mqtts' | 'ws' | 'wss'
  host: string
  port: number
  /** Of a WebSocket, with its leading slash. */
  path: string
}

/** PEM texts. */
export type BridgeTls = {
  ca: string | null
  cert: string | null
  key: Secret | null
  /** Name in the certificate of the broker, where it is not the host of the URL. */
  serverName: string | null
}

export const defaultPorts = { mqtt: 1883, mqtts: 8883, ws: 80, wss: 443 } as const

/** As a person writes it; without user and password, which it never has. */
export function urlText({ scheme, host, port, path }: BridgeUrl): string {
  const hostname = host.includes(':') ? `[${host}]` : host
  return `${scheme}://${hostname}:${port}${path === '/' ? '' : path}`
}

/** The address, or what is wrong with it. */
export function parseUrl(text: string): BridgeUrl | string {
  const match =
    /^(mqtts?|wss?):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@?#[\]]+))(?::(\d{1,5}))?(\/[^\s?#@]*)?$/.exec(text)
  const host = match?.[2] ?? match?.[3]
  if (!match || host === undefined)
    return (
      'must be mqtt://HOST:PORT, mqtts://HOST:PORT, ws://HOST:PORT/PATH or wss://HOST:PORT/PATH, without user and ' +
      'password; they have options of their own'
    )
  const scheme = match[1] as BridgeUrl['scheme']
  const port = match[4] === undefined ? defaultPorts[scheme] : Number(match[4])
  const path = match[5] ?? '/'
  if (port < 1 || port > 65_535) return `must have a port of 1 to 65535, found ${port}`
  if (path !== '/' && scheme.startsWith('mqtt')) return `must have no path, found "${path}"`
  return { scheme, host, port, path }
}

/** For the texts of a fault of the network: `where` it was, and the options of all kinds of bridges. */
export function bridgePlace(
  where: Pick<NetworkPlace, 'peer' | 'host' | 'address' | 'ports'>,
  tls: BridgeTls | null,
): NetworkPlace {
  return {
    ...where,
    name: tls?.serverName ?? where.host,
    hasCa: tls !== null && tls.ca !== null,
    hasCert: tls !== null && tls.cert !== null,
    options: {
      url: '`url` of the bridge',
      ca: '`tls.ca`',
      cert: '`tls.cert` and `tls.key`',
      limit: '`connect_timeout` of the bridge',
      name: '`tls.server_name`',
    },
  }
}

/** MQTT 4.7.1. */
export function checkFilter(text: string, context: z.RefinementCtx): void {
  const refuse = (message: string) => context.addIssue({ code: 'custom', message })
  const levels = text.split('/')
  if (text === '' || text.includes('\0') || Buffer.byteLength(text) > 65_000) refuse('must be a topic filter')
  else if (text.startsWith('$share/')) refuse('must not begin with $share/; use share_group')
  else if (levels.some((level) => level.includes('{')))
    refuse(`is a filter of MQTT: write + in the place of a capture, found "${text}"`)
  else if (
    levels.some(
      (level, index) => (level.includes('#') && index < levels.length - 1) || /.[+#]|[+#]./.test(level),
    )
  )
    refuse(`may have "+" and "#" as whole levels only, and "#" as the last one, found "${text}"`)
}

/** In a filter of a bridge to an engine: the level that names the device. */
export const deviceLevel = '{device}'

/** A filter with at most one `{device}`. */
export function checkDeviceFilter(text: string, context: z.RefinementCtx): void {
  if (text.split('/').filter((level) => level === deviceLevel).length > 1)
    context.addIssue({ code: 'custom', message: `may have {device} once, found "${text}"` })
  else checkFilter(plainFilter(text), context)
}

/** As MQTT has it. */
export function plainFilter(text: string): string {
  return text.replace(deviceLevel, '+')
}
