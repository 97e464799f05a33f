import Basics
import CZeroMQ
import DequeModule
import JSONValue
import Logging

/// The client's work on the poll thread.
extension RequestClient {
    func closeNow() {
        guard socketBox.socket != nil else { return }
        thread.loop.remove(wakeup)
        socketBox.close()
        var ended = calls.removeAll()
        for case .open(let call) in commands.close() { ended.append(call) }
        for call in ended { call.inbox.finish(.ofClosedClient) }
    }

    /// Runs one pass of the poll loop, in this order: the events of the connection, the attempt to connect again, the
    /// callers' commands, received messages, expired deadlines, and the messages to send.
    ///
    /// Messages are received before deadlines expire, so that a call gets a response that has arrived. Requests are
    /// sent last, so that a call that was cancelled or has expired in this pass is not sent.
    func poll(hasEvents: Bool) -> PollInterest {
        guard socketBox.socket != nil else { return PollInterest(wantsInput: false) }
        if hasEvents { handleConnectionEvents() }
        connectIfDue()
        for command in commands.removeAll() { handleCommand(command) }
        let hasMoreWork = receive(budget: limits.receiveBudget)
        expire()
        sendWaiting()
        var interest = PollInterest(wantsOutput: isFull, hasMoreWork: hasMoreWork)
        let wakesAt = min(nextDeadline, connectsAt ?? .max)
        if wakesAt != .max { interest.wakeAfter = max(0, wakesAt - MonotonicClock.system.nowMicroseconds()) }
        return interest
    }

    private func handleConnectionEvents() {
        while let events = socketBox.socket?.events(), !events.isEmpty {
            for event in events {
                handleConnectionEvent(event)
                // The remaining events are those of the socket that was replaced.
                if connectsAt != nil { break }
            }
        }
    }

    private func handleConnectionEvent(_ event: ConnectionEvent) {
        switch event {
        case .closed:
            // Responses received before the connection broke are read first.
            while receive(budget: limits.receiveBudget) {}
            counts.lost += 1
            if connection.isReady { replaceSocket() }
            connection.set(isReady: false)
            control = []
            for call in calls.removeSent() {
                call.inbox.finish(
                    .connectionLost(
                        "the connection to \(address) broke; whether the request was carried out is unknown"
                    )
                )
            }
            for call in calls.removeUnsent() { call.inbox.finish(.unsent(to: "\(address)")) }
        case .ready:
            counts.connections += 1
            connection.set(isReady: true)
        case .refused:
            counts.refused += 1
            // Only with CURVE does a failed handshake mean a refused key.
            guard security.hasKeys, let count = refusals.count(at: MonotonicClock.system.nowMicroseconds()) else {
                return
            }
            logger.warning(
                "the service refused the connection: check the server key given here and its list of keys",
                metadata: ["address": "\(address)", "refusals": "\(count)"]
            )
        case .opened: break
        }
    }

    /// Replaces the socket of a lost connection, which drops its unsent messages. The new one connects after the
    /// reconnect interval, because the service may end every connection as soon as it is made.
    private func replaceSocket() {
        do {
            let socket = try Self.makeSocket(thread.context, limits)
            try socketBox.socket?.socket.set(ZMQ_LINGER, 0 as Int32)
            socketBox.replace(with: socket)
            connectsAt = MonotonicClock.system.nowMicroseconds() + limits.reconnectInterval.microseconds
        } catch {
            // The current socket reconnects by itself.
            logger.warning("cannot make a socket for the next connection", metadata: ["error": "\(error)"])
        }
    }

    private func connectIfDue() {
        guard let time = connectsAt, time <= MonotonicClock.system.nowMicroseconds() else { return }
        do {
            try socketBox.socket?.socket.connect(address, security: security)
            connectsAt = nil
        } catch {
            connectsAt = time + limits.reconnectIntervalMax.microseconds
            logger.warning("cannot connect", metadata: ["address": "\(address)", "error": "\(error)"])
        }
    }

    private func handleCommand(_ command: ClientCommand) {
        switch command {
        case .open(let call):
            guard connection.isReady || call.waitsForConnection else {
                return call.inbox.finish(.unsent(to: "\(address)"))
            }
            calls.add(call)
            if call.wantsEncoded { hasEncodedCalls = true }
            nextDeadline = min(nextDeadline, timeout(of: call))
        case .cancel(let call):
            sendCancellation(call)
        case .credit(let call, let bytes):
            guard calls.isSent(call), calls.isOpen(call) else { return }
            let params: JSONObject = ["id": .int(call.id), "bytes": JSON(bytes)]
            control.append(OutgoingMessage([RPCMessageWriter.notification(method: "rpc.credit", params: params)]))
        }
    }

    private func sendCancellation(_ call: OutgoingCall) {
        guard calls.isOpen(call) else { return }
        call.dropMessage()
        guard calls.cancel(call) else { return }
        let params: JSONObject = ["id": .int(call.id)]
        control.append(OutgoingMessage([RPCMessageWriter.notification(method: "rpc.cancel", params: params)]))
    }

    /// Extra time in microseconds: the service responds at the deadline; the client gives up only if no response
    /// arrives.
    private static let grace: Int64 = 1_000_000

    private func timeout(of call: OutgoingCall) -> Int64 {
        call.deadline.addingClamped(calls.isSent(call) ? Self.grace : 0)
    }

    private func expire() {
        let now = MonotonicClock.system.nowMicroseconds()
        guard now >= nextDeadline else { return }
        let (due, later) = calls.expired(now)
        nextDeadline = later
        for call in due {
            let end = timeout(of: call)
            guard end <= now else {
                nextDeadline = min(nextDeadline, end)
                continue
            }
            let failure = calls.isSent(call) ? "did not answer in time" : "could not be reached in time"
            sendCancellation(call)
            call.inbox.finish(.deadlineExceeded("\(address) \(failure)"))
        }
    }

    /// Sends the waiting messages, as far as libzmq's queue and the limit of open requests allow.
    private func sendWaiting() {
        isFull = false
        guard connection.isReady else { return }
        while let message = control.first {
            guard trySend(message) else { return }
            control.removeFirst()
        }
        while let call = calls.nextToSend() {
            guard trySend(call.pending ?? OutgoingMessage([])) else { return }
            calls.markSent(call)
            call.dropMessage()
            counts.sent += 1
        }
    }

    /// Passes a message to libzmq; returns false if libzmq's queue is full or there is no socket.
    private func trySend(_ message: OutgoingMessage) -> Bool {
        guard let outcome = socketBox.socket?.socket.send(message) else { return false }
        if outcome == .full {
            isFull = true
            return false
        }
        return true
    }

    private func receive(budget: Int) -> Bool {
        for _ in 0..<budget {
            guard
                let message = socketBox.socket?.socket.receive(
                    maxFrames: limits.maxFrames,
                    maxBytes: limits.maxMessageBytes
                )
            else {
                return false
            }
            handleMessage(message)
        }
        return true
    }

    private func handleMessage(_ message: IncomingMessage) {
        if hasEncodedCalls, deliverEncoded(message) { return }
        guard message.violation == nil, let frame = message.frames.first,
            let json = try? JSON(parsing: frame, limits: limits.json), case .object(let object) = json
        else {
            counts.malformed += 1
            return
        }
        let attachments = Array(message.frames.dropFirst())
        if let method = object["method"]?.stringValue {
            handleNotification(method, object["params"] ?? [:], attachments, message.totalBytes)
            return
        }
        guard case .int(let id) = object["id"], let call = calls.removeSentCall(id) else {
            counts.unmatched += 1
            return
        }
        counts.responses += 1
        if let result = object["result"] {
            _ = call.inbox.enqueue(
                .reply(Reply(result, attachments: attachments)),
                bytes: message.totalBytes,
                always: true
            )
            call.inbox.finish()
        } else {
            let error = object["error"].flatMap(RPCError.init(json:))
            if error?.isOfStoppingService == true { connection.noteStopping() }
            call.inbox.finish(error ?? .internalError("the service answered with neither a result nor an error"))
        }
    }

    private func handleNotification(_ method: String, _ params: JSON, _ attachments: [Bytes], _ bytes: Int) {
        guard case .int(let id) = params["id"], let call = calls.sentCall(id) else {
            counts.unmatched += 1
            return
        }
        guard call.wantsNotifications else { return }
        let element = CallElement.notification(method: method, params: params, attachments: attachments, bytes: bytes)
        deliverNotification(element, bytes, for: call)
    }

    /// Delivers a notification or a response unparsed if its call wants that; returns false if the message has to be
    /// parsed.
    private func deliverEncoded(_ message: IncomingMessage) -> Bool {
        guard message.violation == nil, message.frames.count == 1, let frame = message.frames.first else {
            return false
        }
        if let (id, notification) = EncodedNotification.outline(of: frame) {
            guard let call = calls.sentCall(id), call.wantsEncoded else { return false }
            deliverNotification(.encoded(notification, bytes: message.totalBytes), message.totalBytes, for: call)
            return true
        }
        guard let (id, reply) = EncodedReply.outline(of: frame), let call = calls.sentCall(id), call.wantsEncoded,
            !call.wantsNotifications
        else { return false }
        _ = calls.removeSentCall(id)
        counts.responses += 1
        _ = call.inbox.enqueue(.encodedReply(reply), bytes: message.totalBytes, always: true)
        call.inbox.finish()
        return true
    }

    /// Delivers a notification to its call. A call whose inbox is full ends with an error.
    private func deliverNotification(_ element: CallElement, _ bytes: Int, for call: OutgoingCall) {
        if call.inbox.enqueue(element, bytes: bytes) { return }
        sendCancellation(call)
        call.inbox.finish(
            .limitExceeded("notifications arrived faster than they were read; open the stream with credit")
        )
    }
}
