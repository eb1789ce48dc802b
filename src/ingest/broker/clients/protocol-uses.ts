// protocol-uses.ts: counts connections and messages by version of MQTT and by what it goes over, for the
// metrics. Each connection has the counts of its kind, so a message costs one addition. The kinds are
// known beforehand, so the metrics have the same series always.

export type Transport = (typeof transports)[number]
export type ProtocolVersion = (typeof versions)[number]

export type ProtocolUse = {
  readonly version: ProtocolVersion
  readonly transport: Transport
  /** Connections whose CONNECT was accepted: open ones, and all since the start. */
  open: number
  accepted: number
  /** Messages that came, wills left out. */
  messages: number
}

export type ProtocolUses = {
  of(version: ProtocolVersion, transport: Transport): ProtocolUse
  all(): readonly ProtocolUse[]
}

const versions = ['3.1', '3.1.1', '5'] as const
const transports = ['TCP', 'TLS', 'WebSocket', 'WebSocket with TLS'] as const

export function createProtocolUses(): ProtocolUses {
  const uses = versions.flatMap((version) =>
    transports.map((transport): ProtocolUse => ({ version, transport, open: 0, accepted: 0, messages: 0 })),
  )
  return {
    of: (version, transport) => uses.find((use) => use.version === version && use.transport === transport)!,
    all: () => uses,
  }
}
