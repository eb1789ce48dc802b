// route.ts: how a client speaks to the daemon: what carries its bytes, and the version of MQTT in them.

export type Transport = 'tcp' | 'tls' | 'ws' | 'wss'

export type Route = {
  transport: Transport
  /** 4 is MQTT 3.1.1. */
  version: 4 | 5
}

export const transports: readonly Transport[] = ['tcp', 'tls', 'ws', 'wss']

/** Of the URL of the listener. */
export const schemes = { tcp: 'mqtt', tls: 'mqtts', ws: 'ws', wss: 'wss' } as const

export const isSecure = (transport: Transport) => transport === 'tls' || transport === 'wss'
export const isWebSocket = (transport: Transport) => transport === 'ws' || transport === 'wss'

export function urlOf(transport: Transport, port: number): string {
  return `${schemes[transport]}://127.0.0.1:${port}${isWebSocket(transport) ? '/mqtt' : ''}`
}

/** Such as `wss/5`. */
export const routeText = ({ transport, version }: Route) => `${transport}/${version}`

/** Throws where the text names none. */
export function routeOf(text: string): Route {
  const [name = '', number = ''] = text.split('/')
  const transport = transports.find((one) => one === name)
  if (transport === undefined || (number !== '4' && number !== '5'))
    throw new Error(`"${text}" is no route: write one of ${allRoutes.map(routeText).join(', ')}`)
  return { transport, version: number === '4' ? 4 : 5 }
}

export const allRoutes: readonly Route[] = ([4, 5] as const).flatMap((version) =>
  transports.map((transport) => ({ transport, version })),
)
