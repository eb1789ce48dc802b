// resending-device.ts: a device that deletes a message when it has the ack, and sends the others again with DUP over its next
// connection, whatever became of the daemon meanwhile.

import { createDevice } from '../mqtt-device.ts'

export type ResendingDevice = {
  /** How many messages there are so far: their numbers count from 0. */
  readonly published: number
  /** Numbers without an ack. */
  readonly unacked: readonly number[]
  /** Publishes `count` more over a new connection; ends when all are acknowledged or the connection ends. */
  publish(port: number, count: number): Promise<void>
}

export function createResendingDevice(
  clientId: string,
  messageOf: (n: number) => { topic: string; payload: string },
): ResendingDevice {
  let published = 0
  let unacked: { n: number; wasSent: boolean }[] = []
  return {
    get published() {
      return published
    },
    get unacked() {
      return unacked.map(({ n }) => n)
    },
    async publish(port, count) {
      for (let left = count; left > 0; left -= 1) unacked.push({ n: published++, wasSent: false })
      const device = await createDevice({ port, clientId }).catch(() => null)
      if (device === null) return
      const sent = [...unacked]
      try {
        await device.connect()
        for (const message of sent) {
          device.publish({ ...messageOf(message.n), messageId: message.n + 1, dup: message.wasSent })
          message.wasSent = true
        }
        await device.acked(sent.length)
      } catch {
        // The daemon was killed; `acks` has what it acknowledged before.
      }
      const acked = new Set(device.acks.map(({ messageId }) => messageId - 1))
      unacked = sent.filter(({ n }) => !acked.has(n))
      device.destroy()
    },
  }
}
