// member-records.ts: the records of the members in a bucket of NATS (KV), `<prefix>-members`.
//
//   partitions       which member owns which partition (partition-shares.ts)
//   member.<name>    written by the member each second: it lives. The value names the start of its process
//
// A record is written only if it has the revision that its writer saw (Nats-Expected-Last-Subject-Sequence).
// `nats kv get <prefix>-members partitions` shows it.

import { headers, RequestError } from '@nats-io/transport-node'
import type { Connection } from '../nats-connection.ts'
import { wrongLastSequence } from '../nats-faults.ts'
import type { MemberId, SharesRecord } from './partition-shares.ts'

export type Revised<T> = {
  /** 0: there is none. */
  revision: number
  value: T
}

export type MemberRecords = {
  readShares(): Promise<Revised<SharesRecord>>
  /** The new revision; null: another member wrote. */
  writeShares(record: Revised<SharesRecord>): Promise<number | null>
  /** What it says of its process; null: there is none. */
  readMember(name: string): Promise<Revised<string | null>>
  writeMember(member: MemberId, revision: number): Promise<number | null>
  /** Calls when a member writes the shares. */
  watch(changed: () => void): () => void
}

const noShares: SharesRecord = { members: [], owners: [] }

export function bucketName(prefix: string): string {
  return `${prefix}-members`
}

export function bucketStream(prefix: string): string {
  return `KV_${bucketName(prefix)}`
}

export function openMemberRecords({ nc, jsm }: Connection, prefix: string): MemberRecords {
  const stream = bucketStream(prefix)
  const subjectOf = (key: string) => `$KV.${bucketName(prefix)}.${key}`

  async function read(key: string): Promise<Revised<string | null>> {
    const found = await jsm.streams.getMessage(stream, { last_by_subj: subjectOf(key) })
    return found === null
      ? { revision: 0, value: null }
      : { revision: found.seq, value: Buffer.from(found.data).toString() }
  }

  async function write(key: string, value: string, revision: number): Promise<number | null> {
    const expected = headers()
    expected.set('Nats-Expected-Last-Subject-Sequence', String(revision))
    const answer = await nc
      .request(subjectOf(key), value, { headers: expected, timeout: writeMs })
      .catch((error: unknown) => {
        throw isWithoutStream(error) ? bucketMissing(prefix) : error
      })
    const { seq, error } = answer.json<{ seq?: number; error?: { err_code: number; description: string } }>()
    if (error !== undefined && wrongLastSequence.includes(error.err_code)) return null
    if (error !== undefined) throw new Error(error.description)
    return seq ?? null
  }

  return {
    async readShares() {
      const { revision, value } = await read('partitions')
      return { revision, value: sharesIn(value) }
    },
    writeShares: ({ revision, value }) => write('partitions', JSON.stringify(value), revision),
    readMember: (name) => read(memberKey(name)),
    writeMember: ({ name, instance }, revision) => write(memberKey(name), instance, revision),
    watch(changed) {
      const subscription = nc.subscribe(subjectOf('partitions'), { callback: changed })
      return () => subscription.unsubscribe()
    },
  }
}

/** The fault BUCKET_MISSING. */
export function bucketMissing(prefix: string): Error {
  return Object.assign(new Error(`the bucket ${bucketName(prefix)} is missing`), { code: 'BUCKET_MISSING' })
}

/** Nothing takes the subject. */
function isWithoutStream(error: unknown): boolean {
  return error instanceof RequestError && error.isNoResponders()
}

/** A request that waits longer than the lease is of no use. */
const writeMs = 2000

/** What a key may not have becomes its code (`_2f`), so that two names never share one. */
function memberKey(name: string): string {
  return `member.${name.replaceAll(/[^A-Za-z0-9-]/gu, (character) => `_${character.codePointAt(0)!.toString(16)}`)}`
}

/** One that cannot be read counts as none: it is written anew. */
function sharesIn(text: string | null): SharesRecord {
  if (text === null) return noShares
  try {
    const { members, owners } = JSON.parse(text) as Partial<SharesRecord>
    if (!Array.isArray(members) || !Array.isArray(owners)) return noShares
    return {
      members: members.filter(isMember),
      owners: owners.map((owner) => (isMember(owner) ? owner : null)),
    }
  } catch (error) {
    if (error instanceof SyntaxError) return noShares
    throw error
  }
}

function isMember(value: unknown): value is MemberId {
  const { name, instance } = (value ?? {}) as Partial<MemberId>
  return typeof name === 'string' && typeof instance === 'string'
}
