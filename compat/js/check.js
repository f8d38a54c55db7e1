// kafkajs against a broker: node check.js BOOTSTRAP. Run in a folder where kafkajs is installed.
const assert = require('node:assert')
const { randomUUID } = require('node:crypto')
const { createRequire } = require('node:module')
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = createRequire(`${process.cwd()}/`)('kafkajs')

const kafka = new Kafka({ clientId: 'compat', brokers: [process.argv[2]], logLevel: logLevel.ERROR })
const PARTITIONS = 3
const COUNT = 60

const produce = async topic => {
  for (const [settings, compression] of [
    [{ idempotent: true, maxInFlightRequests: 1 }, CompressionTypes.None],
    [{}, CompressionTypes.GZIP],
  ]) {
    const producer = kafka.producer(settings)
    await producer.connect()
    const messages = []
    for (let number = 0; number < COUNT / 2; number++) {
      messages.push({
        key: `key ${number}`,
        value: number % 7 === 0 ? null : `value ${number}`,
        partition: number % PARTITIONS,
        headers: { number: `${number}` },
      })
    }
    await producer.send({ topic, messages, compression, acks: -1 })
    await producer.disconnect()
  }
}

const consume = async (topic, groupId) => {
  const seen = new Map()
  const consumers = [kafka.consumer({ groupId }), kafka.consumer({ groupId })]
  let finish
  const finished = new Promise(resolve => { finish = resolve })
  for (const consumer of consumers) {
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ partition, message }) => {
        const number = message.headers.number.toString()
        assert.strictEqual(message.key.toString(), `key ${number}`)
        assert.strictEqual(message.value === null, number % 7 === 0)
        seen.set(`${partition}:${message.offset}`, number)
        if (seen.size === COUNT) finish()
      },
    })
  }
  await finished
  for (const consumer of consumers) await consumer.disconnect()
}

const administer = async (admin, topic, groupId) => {
  const ends = await admin.fetchTopicOffsets(topic)
  assert.strictEqual(ends.reduce((sum, each) => sum + Number(each.high), 0), COUNT)
  const committed = await admin.fetchOffsets({ groupId, topics: [topic] })
  assert.strictEqual(committed[0].partitions.reduce((sum, each) => sum + Number(each.offset), 0), COUNT)
  assert.ok((await admin.listGroups()).groups.some(each => each.groupId === groupId))
  const { groups } = await admin.describeGroups([groupId])
  assert.strictEqual(groups[0].state, 'Empty')
  await admin.resetOffsets({ groupId, topic, earliest: true })
  const byTime = await admin.fetchTopicOffsetsByTimestamp(topic, Date.now() - 3600000)
  assert.ok(byTime.every(each => each.offset === '0'))
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  await admin.alterConfigs({
    validateOnly: false,
    resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '3600000' }] }],
  })
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [resource] })
  assert.strictEqual(resources[0].configEntries.find(each => each.configName === 'retention.ms').configValue, '3600000')
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '2' }] })
  const starts = await admin.fetchTopicOffsets(topic)
  assert.strictEqual(starts.find(each => each.partition === 0).low, '2')
  await admin.createPartitions({ topicPartitions: [{ topic, count: PARTITIONS + 1 }] })
  await admin.deleteGroups([groupId])
  await admin.deleteTopics({ topics: [topic] })
  assert.ok(!(await admin.listTopics()).includes(topic))
}

const main = async () => {
  const topic = `kafkajs-${randomUUID()}`
  const groupId = `group-${randomUUID()}`
  const admin = kafka.admin()
  await admin.connect()
  const created = await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: PARTITIONS }] })
  assert.strictEqual(created, true)
  await produce(topic)
  await consume(topic, groupId)
  await administer(admin, topic, groupId)
  await admin.disconnect()
  console.log('passed')
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
