// trial-ports.ts: the ports of the trial. One that an option names must be free; the usual ones are replaced
// by ports that the system chooses where they are in use.

import { once } from 'node:events'
import { createServer } from 'node:net'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'

export const trialHost = '127.0.0.1'

export type PortOptions = { mqttPort?: number; servicePort?: number; statusPort?: number }
/** 0 for one that the system chooses. */
export type TrialPorts = { mqtt: number; service: number; status: number }

type Place = { name: keyof TrialPorts; flag: string; asked: number | undefined; usual: number }

/** Rejects with USAGE, ADDRESS_IN_USE or ADDRESS_UNAVAILABLE, which name the option. */
export async function chooseTrialPorts(options: PortOptions): Promise<TrialPorts> {
  const places: readonly Place[] = [
    { name: 'mqtt', flag: '--mqtt-port', asked: options.mqttPort, usual: 1883 },
    { name: 'service', flag: '--service-port', asked: options.servicePort, usual: 8081 },
    { name: 'status', flag: '--status-port', asked: options.statusPort, usual: 8080 },
  ]
  const ports: TrialPorts = { mqtt: 0, service: 0, status: 0 }
  const taken = new Map<number, string>()
  for (const { name, flag, asked = 0 } of places) {
    if (asked === 0) continue
    const other = taken.get(asked)
    if (other !== undefined) throw sameTwice(asked, other, flag)
    const fault = await faultOf(asked)
    if (fault !== null) throw unusable(asked, flag, fault)
    taken.set(asked, flag)
    ports[name] = asked
  }
  for (const { name, asked, usual } of places)
    if (asked === undefined && !taken.has(usual) && (await faultOf(usual)) === null) ports[name] = usual
  return ports
}

/** Null where a server can listen there. */
async function faultOf(port: number): Promise<unknown> {
  const server = createServer()
  try {
    server.listen(port, trialHost)
    await once(server, 'listening')
  } catch (error) {
    return error
  }
  server.close()
  await once(server, 'close')
  return null
}

function unusable(port: number, flag: string, fault: unknown): GatewayError {
  const isUsed = codeOf(fault) === 'EADDRINUSE'
  return new GatewayError(isUsed ? 'ADDRESS_IN_USE' : 'ADDRESS_UNAVAILABLE', {
    what: `The trial cannot use port ${port} (${flag}).`,
    why: isUsed ? `Another program listens at ${trialHost}:${port}.` : `${messageOf(fault)}.`,
    act: `Give another port with ${flag}, or ${flag} 0 for one that the system chooses.`,
    cause: fault,
  })
}

function sameTwice(port: number, first: string, second: string): GatewayError {
  return new GatewayError('USAGE', {
    what: `${first} and ${second} name the same port ${port}.`,
    why: 'Each of them needs a port of its own.',
    act: 'Give two ports, or 0 for one that the system chooses.',
  })
}
