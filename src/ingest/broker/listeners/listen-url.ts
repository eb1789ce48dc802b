// listen-url.ts: the URL of a listener, as config and status write it.

import { defaultPath } from './websocket/websocket-config.ts'

export type ListenUrl = {
  scheme: ListenScheme
  /** TLS. */
  secure: boolean
  host: string
  port: number
  /** Of a WebSocket; null for the others. */
  path: string | null
}

export type ListenScheme = keyof typeof schemes

const schemes = {
  mqtt: { port: 1883, secure: false, hasPath: false },
  mqtts: { port: 8883, secure: true, hasPath: false },
  ws: { port: 8083, secure: false, hasPath: true },
  wss: { port: 8084, secure: true, hasPath: true },
} as const

const pattern =
  /^(mqtts?|wss?):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@?#[\]]+))(?::(\d{1,5}))?(\/[\w.~!$&'()*+,;=:@%/-]*)?$/

/** What is wrong with it, as text. */
export function listenUrlOf(text: string): ListenUrl | string {
  const match = pattern.exec(text)
  const host = match?.[2] ?? match?.[3]
  if (!match || host === undefined) return wrongUrl(text)
  const scheme = match[1] as ListenScheme
  const { secure, hasPath } = schemes[scheme]
  const path = match[5] === undefined || match[5] === '/' ? null : match[5]
  if (path !== null && !hasPath) return wrongUrl(text)
  const port = match[4] === undefined ? schemes[scheme].port : Number(match[4])
  if (port > 65_535) return `must have a port of 0 to 65535, found ${port}`
  return { scheme, secure, host, port, path: hasPath ? (path ?? match[5] ?? defaultPath) : null }
}

function wrongUrl(text: string): string {
  return (
    'must be mqtt://HOST:PORT, mqtts://HOST:PORT, ws://HOST:PORT/PATH or wss://HOST:PORT/PATH without query or password, ' +
    `found "${text}"`
  )
}

/** As a client writes it. */
export function listenUrlText({ scheme, host, port, path }: Omit<ListenUrl, 'secure'>): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path ?? ''}`
}

/** Where the URL has none; that of mqtt:// for what is no such URL. */
export function defaultPortOf(scheme: string | undefined): number {
  return Object.hasOwn(schemes, scheme ?? '') ? schemes[scheme as ListenScheme].port : schemes.mqtt.port
}
