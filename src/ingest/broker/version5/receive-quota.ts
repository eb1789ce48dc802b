// receive-quota.ts: counts the messages of QoS 1 and 2 that a client has sent and that are not acknowledged,
// against the receive maximum that CONNACK announced [MQTT-3.3.4-7]. Pure.
//
// A place is free when the last packet of its message is queued for writing: PUBACK, PUBCOMP, or a PUBREC
// that refuses. The client sees that packet later, so it is never judged by an acknowledgement that it could
// not know. PUBCOMP also answers messages of an earlier connection, which raises the quota of the client in
// the same way (MQTT 4.9), so the count stops at 0.

export type ReceiveQuota = {
  /** Counts a message; false where the client has sent one more than it may. */
  take(): boolean
  /** The last packet of a message was queued. */
  free(): void
  used(): number
}

export function createReceiveQuota(max: number): ReceiveQuota {
  let used = 0
  return {
    take() {
      used += 1
      return used <= max
    },
    free() {
      if (used > 0) used -= 1
    },
    used() {
      return used
    },
  }
}
