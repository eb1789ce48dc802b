// partition-shares.ts: which member owns which partition. Pure: each member computes the next record from
// what it sees, and writes it only if nobody else wrote one meanwhile.
//
// The members, in the order of their names, have the same number of partitions; where that is not a whole
// number the first ones have one more. A member frees what it has above its share, after it has settled it,
// and takes what is free below its share. What a dead member owns is free.
//
// The number of partitions is that of the owners in the record. A member with another number takes nothing as
// long as one of the record lives: two numbers give one device two partitions.

/** A member, as the owner of a partition: its name, and the start of the process. */
export type MemberId = { name: string; instance: string }

/** The record that all members share. */
export type SharesRecord = {
  members: readonly MemberId[]
  /** By partition; null: free. */
  owners: readonly (MemberId | null)[]
}

export type SharesView = {
  me: MemberId
  /** It takes messages now. */
  isAccepting: boolean
  partitions: number
  /** It has not been heard for the time of a lease. */
  isDead: (member: MemberId) => boolean
  /** Own partitions that were settled, and can be given to others. */
  settled: ReadonlySet<number>
}

export type Plan = {
  /** What is to be written; the record itself where nothing changes. */
  next: SharesRecord
  /** Own partitions to be settled, and freed then. */
  toSettle: readonly number[]
}

/** A running member with another number of partitions; null: there is none. */
export function otherNumber(
  { members, owners }: SharesRecord,
  { me, partitions, isDead }: Pick<SharesView, 'me' | 'partitions' | 'isDead'>,
): { member: string; partitions: number } | null {
  if (owners.length === 0 || owners.length === partitions) return null
  const other = members.find((member) => member.name !== me.name && !isDead(member))
  return other === undefined ? null : { member: other.name, partitions: owners.length }
}

export function planShares(record: SharesRecord, view: SharesView): Plan {
  const { me, isAccepting, partitions, settled, isDead } = view
  const isMe = (member: MemberId | null) => member !== null && isSame(member, me)
  const others = record.members.filter((member) => member.name !== me.name && !isDead(member))
  const members = [...others, ...(isAccepting ? [me] : [])].sort(byName)
  const isAlive = (owner: MemberId) => others.some((member) => isSame(member, owner))
  const owners = Array.from({ length: partitions }, (_, index) => {
    const owner = record.owners[index] ?? null
    if (owner === null || (!isMe(owner) && !isAlive(owner))) return null
    return isMe(owner) && settled.has(index) ? null : owner
  })
  const share = isAccepting ? shareOf(members.findIndex(isMe), members.length, partitions) : 0
  const mine = owners.flatMap((owner, index) => (isMe(owner) ? [index] : []))
  // With nobody to give it to, it stays.
  const surplus = members.length === 0 ? [] : mine.slice(share)
  let missing = share - mine.length
  for (const [index, owner] of owners.entries()) {
    if (missing <= 0) break
    // What was settled is meant for another one.
    if (owner !== null || settled.has(index)) continue
    owners[index] = me
    missing -= 1
  }
  const next = { members, owners }
  return { next: isEqual(next, record) ? record : next, toSettle: surplus }
}

/** Without this member: at its planned stop. */
export function withoutMember(record: SharesRecord, me: MemberId): SharesRecord {
  return {
    members: record.members.filter((member) => !isSame(member, me)),
    owners: record.owners.map((owner) => (owner !== null && isSame(owner, me) ? null : owner)),
  }
}

export function isSame(one: MemberId, other: MemberId): boolean {
  return one.name === other.name && one.instance === other.instance
}

function shareOf(rank: number, members: number, partitions: number): number {
  return Math.floor(partitions / members) + (rank < partitions % members ? 1 : 0)
}

function isEqual(one: SharesRecord, other: SharesRecord): boolean {
  return JSON.stringify([one.members, one.owners]) === JSON.stringify([other.members, other.owners])
}

function byName(one: MemberId, other: MemberId): number {
  return one.name < other.name ? -1 : one.name > other.name ? 1 : 0
}
