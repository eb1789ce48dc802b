// control-socket.ts: the UNIX socket of the daemon. Who may open the file may change everything, so its mode
// is the access control:
//
//   in $RUNTIME_DIRECTORY   0660: the directory (0750) and the group of the service admit its members
//   elsewhere               0600: only the user of the daemon and root; nobody chose a group for it
//
// A file of a dead daemon is replaced. One of a living daemon is not: connecting to it shows the difference.

import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { codeOf, GatewayError, messageOf } from '../../../std/gateway-error.ts'
import { socketPathProblem } from '../../config.ts'

export type SocketPlace = { path: string; isShared: boolean }

/** Rejects with ADDRESS_IN_USE for the socket of a living process, and with ADDRESS_UNAVAILABLE. */
export async function listenOnSocket(server: Server, { path, isShared }: SocketPlace): Promise<void> {
  const problem = socketPathProblem(path)
  if (problem !== null) throw unavailable(path, `The path ${problem}.`)
  const found = kindOf(path)
  if (found === 'other') throw unavailable(path, 'A file that is no socket is in its place.')
  if (found === 'socket') {
    if (await answers(path))
      throw new GatewayError('ADDRESS_IN_USE', {
        what: `Cannot open the control socket ${path}.`,
        why: 'Another process answers there, perhaps another gateway.',
        act: 'Stop the other one, or set ops.control_socket to another path.',
      })
    inItsDirectory(path, () => unlinkSync(path))
  }
  await new Promise<void>((resolve, reject) => {
    const onError = (error: Error) => reject(unavailable(path, error.message, error))
    server.once('error', onError)
    server.listen(path, () => {
      server.removeListener('error', onError)
      server.on('error', () => undefined)
      resolve()
    })
  })
  inItsDirectory(path, () => chmodSync(path, isShared ? 0o660 : 0o600))
}

/** The directory may be gone, or its file system read-only. */
function inItsDirectory(path: string, change: () => void): void {
  try {
    change()
  } catch (error) {
    throw unavailable(path, `${messageOf(error)}.`, error)
  }
}

/** Changes when another file takes the place of the socket. Null: there is none. */
export function socketIdentity(path: string): string | null {
  try {
    const { dev, ino } = lstatSync(path)
    return `${dev} ${ino}`
  } catch {
    return null
  }
}

function kindOf(path: string): 'none' | 'socket' | 'other' {
  try {
    return lstatSync(path).isSocket() ? 'socket' : 'other'
  } catch {
    // What else is wrong with the path, listening reports.
    return 'none'
  }
}

/** Only a refused connection shows that nobody listens. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    const end = (isAlive: boolean) => {
      socket.destroy()
      resolve(isAlive)
    }
    socket.once('connect', () => end(true))
    socket.once('error', (error) => end(codeOf(error) !== 'ECONNREFUSED' && codeOf(error) !== 'ENOENT'))
  })
}

function unavailable(path: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('ADDRESS_UNAVAILABLE', {
    what: `Cannot open the control socket ${path}.`,
    why,
    act: 'Make its directory writable for the user of the daemon, or set ops.control_socket.',
    cause,
  })
}
