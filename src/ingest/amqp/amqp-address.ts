// amqp-address.ts: the addresses of the nodes of a RabbitMQ, as the config has them.

import type { AmqpNode } from './types.ts'

export const amqpPorts = { amqp: 5672, amqps: 5671 } as const

/** The address, or what is wrong with it. */
export function parseNode(text: string): AmqpNode | string {
  const match = /^(amqps?):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@?#[\]]+))(?::(\d{1,5}))?\/?$/.exec(text)
  const host = match?.[2] ?? match?.[3]
  if (!match || host === undefined)
    return (
      'must be amqp://HOST:PORT or amqps://HOST:PORT, without user, password and virtual host; they have options ' +
      'of their own'
    )
  const scheme = match[1] as AmqpNode['scheme']
  const port = match[4] === undefined ? amqpPorts[scheme] : Number(match[4])
  if (port < 1 || port > 65_535) return `must have a port of 1 to 65535, found ${port}`
  return { scheme, host, port }
}

/** As a person writes it. */
export function nodeText({ scheme, host, port }: AmqpNode): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

export function nodesText(nodes: readonly AmqpNode[]): string {
  return nodes.map(nodeText).join(', ')
}
