import Hosting
import JSONValue
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(1)))
struct PrometheusTests {
    @Test func `metrics are named by their path, and errors are labels`() {
        var catalog = StatusCommand.State(service: .catalog, address: "")
        catalog.metrics = [
            "requests": ["bytesIn": 12, "errors": ["invalid_params": 3, "a\"b\\": 1]], "isReady": true,
            "visible.image": 4, "rate": 0.5, "name": "x", "pids": [1],
        ]
        let lines = PrometheusText.lines([catalog, StatusCommand.State(service: .editor, address: "")])
        #expect(
            lines == [
                "# TYPE safelight_up untyped", "safelight_up{service=\"catalog\"} 0",
                "safelight_up{service=\"editor\"} 0",
                "# TYPE safelight_healthy untyped", "safelight_healthy{service=\"catalog\"} 0",
                "safelight_healthy{service=\"editor\"} 0", "# TYPE safelight_requests_bytes_in untyped",
                "safelight_requests_bytes_in{service=\"catalog\"} 12", "# TYPE safelight_requests_errors untyped",
                "safelight_requests_errors{service=\"catalog\",error=\"invalid_params\"} 3",
                "safelight_requests_errors{service=\"catalog\",error=\"a\\\"b\\\\\"} 1",
                "# TYPE safelight_is_ready untyped", "safelight_is_ready{service=\"catalog\"} 1",
                "# TYPE safelight_visible_image untyped", "safelight_visible_image{service=\"catalog\"} 4",
                "# TYPE safelight_rate untyped", "safelight_rate{service=\"catalog\"} 0.5",
            ]
        )
        #expect(PrometheusText.snakeCase("commitMicrosecondsP50") == "commit_microseconds_p50")
        #expect(PrometheusText.snakeCase("mostTCP") == "most_tcp")
    }
}
